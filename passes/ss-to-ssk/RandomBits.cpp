//===- RandomBits.cpp - random bits that depend on a place alone ----------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "RandomBits.h"

using namespace mlir;

namespace sinkstate {

Value splitmix64(KernelBuilder &k, Value z) {
  z = k.name("z", k.add(z, k.integer64(0x9e3779b97f4a7c15)));
  z = k.name("z", k.mul(k.bitXor(z, k.shiftRight(z, 30)),
                        k.integer64(0xbf58476d1ce4e5b9)));
  z = k.name("z", k.mul(k.bitXor(z, k.shiftRight(z, 27)),
                        k.integer64(0x94d049bb133111eb)));
  return k.name("z", k.bitXor(z, k.shiftRight(z, 31)));
}

Value hash32(KernelBuilder &k, Value x) {
  x = k.bitXor(x, k.shiftRight(x, 16));
  x = k.mul(x, k.integer(0x21f0aaad));
  x = k.bitXor(x, k.shiftRight(x, 15));
  x = k.mul(x, k.integer(int32_t(0xd35a2d97)));
  return k.bitXor(x, k.shiftRight(x, 15));
}

Value placeBits(KernelBuilder &k, Value element) {
  return k.mul(element, k.integer(int32_t(0x85ebca6b)));
}

} // namespace sinkstate
