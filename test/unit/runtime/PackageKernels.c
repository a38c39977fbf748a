/* The code of a package folder in tests: one layer of dense form whose output
 * names the file it came from. */
#include <stdint.h>

#ifndef SS_TEST_LEVEL
#error "define SS_TEST_LEVEL"
#endif

/* args: y (f32*), y_stride (i64); one head of four values. */
void test_decode(const void *const *args, const void *routines, int64_t begin,
                 int64_t end);
void test_decode(const void *const *args, const void *routines, int64_t begin,
                 int64_t end) {
  float *y = *(float *const *)args[0];
  const int64_t stride = *(const int64_t *)args[1];
  (void)routines;
  for (int64_t program = begin; program < end; ++program)
    for (int r = 0; r < 4; ++r)
      y[program * stride + r] = SS_TEST_LEVEL;
}
