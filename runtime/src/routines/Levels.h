// Names of the routines compiled for one instruction-set level: SS_LEVEL is
// set by the build, one value per compilation.
#ifndef SINKSTATE_RUNTIME_ROUTINES_LEVELS_H
#define SINKSTATE_RUNTIME_ROUTINES_LEVELS_H

#include <stdint.h>

#define SS_DECLARE_LEVEL(LEVEL)                                                \
  namespace sinkstate::routines::LEVEL {                                       \
  int32_t orthogonalize(int32_t m, double *gram, double *t);                   \
  int32_t coreSvd(int32_t m, double *c, double *xt, double *sigma,             \
                  double *yt);                                                 \
  int32_t gramSvd(int32_t m, float *vectors, double *sigma, double *room,      \
                  double share);                                               \
  int32_t addGram(int32_t m, int32_t width, int32_t columnsAreRows,            \
                  int32_t isFirst, float *chunk, float *vectors);              \
  }
SS_DECLARE_LEVEL(baseline)
SS_DECLARE_LEVEL(v3)
SS_DECLARE_LEVEL(v4)
#undef SS_DECLARE_LEVEL

#endif
