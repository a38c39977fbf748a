//===- MachineCode.h - What a cubin's instructions are --------------------*- C++ -*-===//
//
// As far as tests have to tell them apart. Toolkits have disassemblers, but where only
// NVRTC is there is none, and NVIDIA documents no encoding: MachineCodeTest.cpp compiles
// each instruction that matters and looks for what is said here.
//
//===--------------------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_MACHINECODE_H
#define SINKSTATE_UNIT_MACHINECODE_H

#include <cstdint>
#include <string>
#include <vector>

namespace sinkstate::test {

struct MachineFunction {
  std::string name;
  std::vector<uint32_t> opcodes; ///< in the order of their addresses
};

/// The kernels of machine code as NVRTC gives it, of sm_90. Throws std::runtime_error where
/// it is no such file.
std::vector<MachineFunction> functionsOf(const std::string &cubin);

/// griddepcontrol.wait.
bool isWaitForStream(uint32_t opcode);
/// Reads or writes memory that other kernels share: no constants, locals or shared memory.
bool isGlobalAccess(uint32_t opcode);
/// Reads or writes memory by an address that may be of any kind.
bool isGenericAccess(uint32_t opcode);
/// May go on elsewhere than at the next instruction; not EXIT, which ends a thread.
bool isBranch(uint32_t opcode);

/// What is wrong with a kernel that begins beside the end of the one before it, or nothing.
/// Up to its wait it must run straight on and access no global memory.
std::string wrongBeforeWait(const MachineFunction &function);

} // namespace sinkstate::test

#endif // SINKSTATE_UNIT_MACHINECODE_H
