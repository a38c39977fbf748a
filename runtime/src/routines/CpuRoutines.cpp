// Picks the routines of the best instruction-set level at run time.
#include "sinkstate/cpu_routines.h"

#include "Levels.h"

#include <cstring>
#include <initializer_list>

namespace {

constexpr uint32_t numRoutines = 0
#define SS_ROUTINE(name, signature, warps) +1
#include "sinkstate/routines.def"
    ;

#define SS_TABLE(LEVEL)                                                        \
  {SS_ABI_VERSION, numRoutines, sinkstate::routines::LEVEL::orthogonalize,     \
   sinkstate::routines::LEVEL::coreSvd, sinkstate::routines::LEVEL::gramSvd,   \
   sinkstate::routines::LEVEL::addGram}

constexpr ss_routine_table baselineTable = SS_TABLE(baseline);
#ifdef SS_HAVE_LEVEL_v3
constexpr ss_routine_table v3Table = SS_TABLE(v3);
#endif
#ifdef SS_HAVE_LEVEL_v4
constexpr ss_routine_table v4Table = SS_TABLE(v4);
#endif
#undef SS_TABLE

const ss_routine_table *pickTable() {
  for (const char *isa : {"x86-64-v4", "x86-64-v3"})
    if (const ss_routine_table *table = ss_cpu_routines_for(isa))
      return table;
  return &baselineTable;
}

} // namespace

const ss_routine_table *ss_cpu_routines_for(const char *isa) {
  if (std::strcmp(isa, "baseline") == 0)
    return &baselineTable;
#ifdef SS_HAVE_LEVEL_v4
  if (std::strcmp(isa, "x86-64-v4") == 0 &&
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
    return &v4Table;
#endif
#ifdef SS_HAVE_LEVEL_v3
  if (std::strcmp(isa, "x86-64-v3") == 0 && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("fma"))
    return &v3Table;
#endif
  return nullptr;
}

const ss_routine_table *ss_cpu_routines() {
  static const ss_routine_table *table = pickTable();
  return table;
}
