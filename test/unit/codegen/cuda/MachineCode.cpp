//===- MachineCode.cpp - What a cubin's instructions are ----------------------------===//

#include "MachineCode.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace sinkstate::test {
namespace {

constexpr size_t kInstructionBytes = 16;
/// Of an instruction's first word; the four bits above are its predicate.
constexpr uint64_t kOpcodeMask = 0xfff;
/// Of an opcode; the bits above say what its operands are.
constexpr uint32_t kOperationMask = 0x1ff;

constexpr uint32_t kAcqbulk = 0x82e;
/// LD, LDG, ST, STG, ATOM, ATOMG, RED, LDGSTS, CCTL and others between them ...
constexpr uint32_t kFirstMemory = 0x180, kLastMemory = 0x1bf;
/// ... but LDC, LDL, LDS, STL, STS, SHFL, ATOMS and ATOMS.CAS.
constexpr uint32_t kNotGlobal[] = {0x182, 0x183, 0x184, 0x187, 0x188, 0x189, 0x18c, 0x18d};
/// CALL, BRA, JMP, BRX, RET and others, and EXIT between them.
constexpr uint32_t kGenericLoad = 0x180, kGenericStore = 0x185;
constexpr uint32_t kFirstBranch = 0x140, kLastBranch = 0x152, kExit = 0x14d;

template <typename T> T loadAt(const std::string &bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T))
    throw std::runtime_error("machine code ends early");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<uint32_t> opcodesOf(const std::string &cubin, const Elf64_Shdr &section) {
  std::vector<uint32_t> opcodes;
  for (uint64_t at = 0; at + kInstructionBytes <= section.sh_size; at += kInstructionBytes)
    opcodes.push_back(
        uint32_t(loadAt<uint64_t>(cubin, section.sh_offset + at) & kOpcodeMask));
  return opcodes;
}

} // namespace

std::vector<MachineFunction> functionsOf(const std::string &cubin) {
  const auto header = loadAt<Elf64_Ehdr>(cubin, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    throw std::runtime_error("machine code is no ELF file");
  auto sectionAt = [&](size_t index) {
    return loadAt<Elf64_Shdr>(cubin, header.e_shoff + index * header.e_shentsize);
  };
  const Elf64_Shdr names = sectionAt(header.e_shstrndx);
  const std::string prefix = ".text.";
  std::vector<MachineFunction> functions;
  for (size_t index = 0; index < header.e_shnum; ++index) {
    const Elf64_Shdr section = sectionAt(index);
    const std::string name = cubin.c_str() + names.sh_offset + section.sh_name;
    if (section.sh_type == SHT_PROGBITS && name.rfind(prefix, 0) == 0)
      functions.push_back({name.substr(prefix.size()), opcodesOf(cubin, section)});
  }
  return functions;
}

bool isWaitForStream(uint32_t opcode) { return opcode == kAcqbulk; }

bool isGlobalAccess(uint32_t opcode) {
  const uint32_t operation = opcode & kOperationMask;
  return operation >= kFirstMemory && operation <= kLastMemory &&
         std::find(std::begin(kNotGlobal), std::end(kNotGlobal), operation) ==
             std::end(kNotGlobal);
}

bool isGenericAccess(uint32_t opcode) {
  const uint32_t operation = opcode & kOperationMask;
  return operation == kGenericLoad || operation == kGenericStore;
}

bool isBranch(uint32_t opcode) {
  const uint32_t operation = opcode & kOperationMask;
  return operation >= kFirstBranch && operation <= kLastBranch && operation != kExit;
}

std::string wrongBeforeWait(const MachineFunction &function) {
  const std::vector<uint32_t> &opcodes = function.opcodes;
  const auto wait = std::find_if(opcodes.begin(), opcodes.end(), isWaitForStream);
  if (wait == opcodes.end())
    return "does not wait for the stream";
  auto find = [&](bool (*is)(uint32_t), const char *what) -> std::string {
    const auto found = std::find_if(opcodes.begin(), wait, is);
    if (found == wait)
      return "";
    return what + std::to_string(found - opcodes.begin()) + " and waits in " +
           std::to_string(wait - opcodes.begin());
  };
  const std::string access = find(isGlobalAccess, "accesses global memory in instruction ");
  return access.empty() ? find(isBranch, "branches in instruction ") : access;
}

} // namespace sinkstate::test
