//===- FakeCusolver.cpp - cuSOLVER's gesvda for the fake GPU --------------===//
//
// Takes few matrices in one call, as the real one does whose workspace is
// counted in an int, and says of every matrix that its largest singular value
// is 1.
//
//===----------------------------------------------------------------------===//

namespace {

constexpr int kSuccess = 0, kInvalidValue = 3;
constexpr int kMostMatrices = 7, kFloatsEach = 5;

/// What both functions refuse.
bool isWrong(int rank, int m, int n, int lda, long long strideA,
             long long strideS, int ldu, long long strideU, int ldv,
             long long strideV, int batch) {
  return batch < 1 || batch > kMostMatrices || m < n || rank < 1 || rank > n ||
         lda < m || strideA < (long long)(lda)*n || strideS < rank ||
         ldu < m || strideU < (long long)(ldu)*rank || ldv < n ||
         strideV < (long long)(ldv)*rank;
}

} // namespace

extern "C" {

int cusolverDnCreate(void **handle) {
  static int any;
  *handle = &any;
  return kSuccess;
}
int cusolverDnDestroy(void *) { return kSuccess; }
int cusolverDnSetStream(void *, void *) { return kSuccess; }

int cusolverDnSgesvdaStridedBatched_bufferSize(
    void *, int, int rank, int m, int n, const float *, int lda,
    long long strideA, const float *, long long strideS, const float *, int ldu,
    long long strideU, const float *, int ldv, long long strideV, int *work,
    int batch) {
  if (isWrong(rank, m, n, lda, strideA, strideS, ldu, strideU, ldv, strideV,
              batch))
    return kInvalidValue;
  *work = kFloatsEach * batch;
  return kSuccess;
}

int cusolverDnSgesvdaStridedBatched(
    void *, int, int rank, int m, int n, const float *, int lda,
    long long strideA, float *s, long long strideS, float *u, int ldu,
    long long strideU, float *v, int ldv, long long strideV, float *work,
    int workCount, int *info, double *, int batch) {
  if (workCount < kFloatsEach * batch ||
      isWrong(rank, m, n, lda, strideA, strideS, ldu, strideU, ldv, strideV,
              batch))
    return kInvalidValue;
  for (int i = 0; i < batch; ++i) {
    s[i * strideS] = 1;
    u[i * strideU] = v[i * strideV] = work[i] = 1;
    info[i] = 0;
  }
  return kSuccess;
}
}
