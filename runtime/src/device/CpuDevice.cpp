//===- CpuDevice.cpp - The processor as a device --------------------------===//

#include "device/CpuDevice.h"

#include "capi/Failure.h"
#include "sinkstate/cpu_routines.h"

#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

namespace sinkstate::runtime {
namespace {

/// Programs that are worth a hand-over to another thread. Decoding is short
/// and even; compaction is long and its programs differ.
int64_t programsPerRange(KernelRole role, int64_t programs, int threads) {
  if (role != KernelRole::Decode)
    return 1;
  constexpr int64_t kLeast = 4;
  return std::max(kLeast, (programs + threads - 1) / threads);
}

/// Bytes of the large pages that Linux gives to who asks for them; 0: none.
size_t transparentPageBytes() {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  std::ifstream modes(folder + "enabled"), size(folder + "hpage_pmd_size");
  std::string mode;
  while (modes >> mode)
    if (mode == "[never]")
      return 0;
  size_t bytes = 0;
  return size >> bytes ? bytes : 0;
}

/// MADV_COLLAPSE, of Linux 6.1 and later, which older headers do not have.
constexpr int kCollapse = 25;

std::byte *mapRange(size_t bytes) {
  void *begin = mmap(nullptr, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED)
    fail(SS_OUT_OF_MEMORY, "no address range of ", bytes, " bytes (",
         std::strerror(errno), "): create the engine with fewer slots");
  return static_cast<std::byte *>(begin);
}

} // namespace

CpuDevice::CpuDevice(int threads)
    : threadCount(threads > 0 ? threads : std::max(1, omp_get_num_procs())),
      page(size_t(sysconf(_SC_PAGESIZE))), largePage(transparentPageBytes()),
      routines(ss_cpu_routines()) {}

int64_t CpuDevice::physicalBytes() const {
  return int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(page);
}

std::byte *CpuDevice::reserve(size_t bytes) {
  if (largePage == 0 || bytes < largePage || bytes > SIZE_MAX - largePage)
    return mapRange(bytes);
  // Aligned: what is too much on either side goes back.
  std::byte *const mapped = mapRange(bytes + largePage);
  const size_t before = -reinterpret_cast<uintptr_t>(mapped) % largePage;
  unreserve(mapped, before);
  unreserve(mapped + before + bytes, largePage - before);
  return mapped + before;
}

void CpuDevice::allowLargePages(std::byte *begin, size_t bytes) noexcept {
  if (largePage > 0 && bytes >= largePage)
    (void)madvise(begin, bytes, MADV_HUGEPAGE);
}

void CpuDevice::makeLargePage(std::byte *begin) noexcept {
  if (largePage > 0)
    (void)madvise(begin, largePage, kCollapse);
}

void CpuDevice::commit(std::byte *begin, size_t bytes) {
  if (bytes > 0 && mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0)
    fail(SS_OUT_OF_MEMORY, "no memory for ", bytes, " more bytes of state (",
         std::strerror(errno), "): free slots and try again");
}

void CpuDevice::discard(std::byte *begin, size_t bytes) noexcept {
  if (bytes > 0)
    (void)madvise(begin, bytes, MADV_DONTNEED);
}

void CpuDevice::unreserve(std::byte *begin, size_t bytes) noexcept {
  if (begin && bytes > 0)
    (void)munmap(begin, bytes);
}

void CpuDevice::copy(void *to, const void *from, size_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, bytes);
}

void CpuDevice::zero(void *begin, size_t bytes) {
  if (bytes > 0)
    std::memset(begin, 0, bytes);
}

void CpuDevice::launch(const Launch &launch) {
  const KernelManifest &kernel = launch.package.kernel(launch.kernel);
  const ss_cpu_kernel entry = launch.package.cpuEntry(launch.kernel);
  const void *const *arguments = launch.values.bind(kernel.arguments);
  const int64_t programs = launch.programs;
  const int64_t perRange =
      programsPerRange(kernel.role, programs, threadCount);
  const int64_t ranges = (programs + perRange - 1) / perRange;
  if (ranges <= 1 || threadCount == 1) {
    if (programs > 0)
      entry(arguments, routines, 0, programs);
    return;
  }
  const int workers = int(std::min<int64_t>(threadCount, ranges));
#pragma omp parallel for num_threads(workers) schedule(dynamic, 1)
  for (int64_t range = 0; range < ranges; ++range)
    entry(arguments, routines, range * perRange,
          std::min(programs, (range + 1) * perRange));
}

} // namespace sinkstate::runtime
