// mps.m multiplies matrices with Metal Performance Shaders, whose matrices are row-major, like
// ours.

#include "state.h"

static int32_t metal_blas_open(cs_device *d, const char *names, cs_error *err) {
  (void)names;
  BOOL can = NO;
  int32_t status = present(d, err);
  if (status == CS_OK)
    RUN(status, err, ((can = MPSSupportsMTLDevice(d->handle)), CS_OK));
  if (status == CS_OK && !can)
    return tell(err, CS_UNSUPPORTED, 0, "Metal Performance Shaders do not run on this device");
  return status;
}

// matrix returns a matrix with rows of ld elements in a buffer. The caller releases it.
static MPSMatrix *matrix(struct place p, int64_t rows, int64_t columns, int64_t ld, int32_t type) {
  MPSDataType of = type == 0 ? MPSDataTypeFloat32 : MPSDataTypeFloat16;
  NSUInteger bytes = (NSUInteger)ld * (type == 0 ? 4 : 2);
  MPSMatrixDescriptor *shape = [MPSMatrixDescriptor matrixDescriptorWithRows:(NSUInteger)rows
                                                                     columns:(NSUInteger)columns
                                                                    rowBytes:bytes
                                                                    dataType:of];
  return [[MPSMatrix alloc] initWithBuffer:p.block->buffer
                                    offset:(NSUInteger)p.offset
                                descriptor:shape];
}

// multiply encodes the product, with encoders of the framework's own.
static int32_t multiply(cs_stream *s, const cs_gemm *g, const struct place *places, cs_error *err) {
  int32_t status = begin(s, err);
  for (int i = 0; i < 3 && status == CS_OK; i++)
    status = touch(s, places[i].block, err);
  if (status != CS_OK)
    return status;
  end_encoding(s);
  MPSMatrixMultiplication *product = nil;
  MPSMatrix *a = nil, *b = nil, *c = nil;
  @try {
    product = [[MPSMatrixMultiplication alloc] initWithDevice:s->dev->handle
                                                transposeLeft:g->trans_a != 0
                                               transposeRight:g->trans_b != 0
                                                   resultRows:(NSUInteger)g->m
                                                resultColumns:(NSUInteger)g->n
                                              interiorColumns:(NSUInteger)g->k
                                                        alpha:g->alpha
                                                         beta:g->beta];
    a = matrix(places[0], g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda, g->type);
    b = matrix(places[1], g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb, g->type);
    c = matrix(places[2], g->m, g->n, g->ldc, g->type);
    if (product != nil && a != nil && b != nil && c != nil)
      [product encodeToCommandBuffer:s->open->buffer leftMatrix:a rightMatrix:b resultMatrix:c];
    else
      status = tell(err, CS_FAILED, 0, "MPSMatrixMultiplication: the framework returned none");
  } @finally { // RUN handles exceptions
    [product release];
    [a release];
    [b release];
    [c release];
  }
  return status == CS_OK ? queued(s, err) : status;
}

static int32_t metal_gemm(cs_stream *s, const cs_gemm *g, cs_error *err) {
  const int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
  for (int i = 0; i < 6; i++) {
    if (sizes[i] < 1)
      return tell(err, CS_INVALID, 0, "a matrix product with a size of %lld", (long long)sizes[i]);
    if (sizes[i] > INT32_MAX)
      return tell(err, CS_TOO_LARGE, 0, "a matrix size of %lld is too large", (long long)sizes[i]);
  }
  if (g->type != 0 && g->type != 2)
    return tell(err, CS_UNSUPPORTED, 0, "MPSMatrixMultiplication has no products of type %d",
                g->type);
  // A product accesses the memory of all rows of each matrix.
  const uint64_t size = g->type == 0 ? 4 : 2;
  const int64_t rows[] = {g->trans_a ? g->k : g->m, g->trans_b ? g->n : g->k, g->m};
  const int64_t columns[] = {g->trans_a ? g->m : g->k, g->trans_b ? g->k : g->n, g->n};
  const uint64_t at[] = {g->a, g->b, g->c};
  struct place places[3];
  int32_t status = CS_OK;
  for (int i = 0; i < 3 && status == CS_OK; i++)
    status = find(s->dev, at[i], (uint64_t)((rows[i] - 1) * sizes[3 + i] + columns[i]) * size,
                  &places[i], err);
  if (status == CS_OK)
    ON(s, status, err, multiply(s, g, places, err));
  return status;
}
