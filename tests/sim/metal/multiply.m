// multiply.m: the matrix product of Metal Performance Shaders.

#include "sim.h"

#include <math.h>

BOOL MPSSupportsMTLDevice(id<MTLDevice> device) { return device != nil; }

@interface SimMatrixDescriptor : MPSMatrixDescriptor {
@public
  NSUInteger rows, columns, rowBytes;
  MPSDataType type;
}
@end

@interface SimMatrix : MPSMatrix {
@public
  SimBuffer *buffer;
  NSUInteger offset, rows, columns, rowBytes;
  MPSDataType type;
}
@end

@interface SimMultiplication : MPSMatrixMultiplication {
@public
  BOOL left, right;
  NSUInteger rows, columns, interior;
  double alpha, beta;
}
@end

@implementation MPSMatrixDescriptor
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)dataType {
  NSUInteger size = dataType == MPSDataTypeFloat16 ? 2 : 4;
  CHECK(rows > 0 && columns > 0, @"a matrix of %lu rows and %lu columns", (unsigned long)rows,
        (unsigned long)columns);
  CHECK(rowBytes >= columns * size && rowBytes % size == 0, @"rows of %lu bytes",
        (unsigned long)rowBytes);
  SimMatrixDescriptor *d = [[[SimMatrixDescriptor alloc] init] autorelease];
  d->rows = rows;
  d->columns = columns;
  d->rowBytes = rowBytes;
  d->type = dataType;
  return d;
}
@end

@implementation SimMatrixDescriptor
- (id)init {
  self = [super init];
  simmetal_count(GAUGE_OBJECTS, 1);
  return self;
}
- (void)dealloc {
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
@end

@implementation MPSMatrix
+ (id)allocWithZone:(NSZone *)zone {
  return self == [MPSMatrix class] ? [SimMatrix allocWithZone:zone] : [super allocWithZone:zone];
}
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor *)descriptor {
  (void)buffer, (void)offset, (void)descriptor;
  return [super init]; // SimMatrix has its own initializer
}
@end

@implementation SimMatrix
- (instancetype)initWithBuffer:(id<MTLBuffer>)b
                        offset:(NSUInteger)at
                    descriptor:(MPSMatrixDescriptor *)descriptor {
  self = [super initWithBuffer:b offset:at descriptor:descriptor];
  SimMatrixDescriptor *d = (SimMatrixDescriptor *)descriptor;
  simmetal_count(GAUGE_OBJECTS, 1);
  buffer = [(SimBuffer *)b retain];
  offset = at;
  rows = d->rows;
  columns = d->columns;
  rowBytes = d->rowBytes;
  type = d->type;
  NSUInteger size = type == MPSDataTypeFloat16 ? 2 : 4;
  NSUInteger used = at + (rows - 1) * rowBytes + columns * size;
  if (used > buffer->bytes) {
    [self release];
    CHECK(NO, @"a matrix beyond the end of its buffer");
  }
  return self;
}
- (void)dealloc {
  [buffer release];
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
@end

@implementation MPSKernel
@end

@implementation MPSMatrixMultiplication
+ (id)allocWithZone:(NSZone *)zone {
  return self == [MPSMatrixMultiplication class] ? [SimMultiplication allocWithZone:zone]
                                                 : [super allocWithZone:zone];
}
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns
                         alpha:(double)alpha
                          beta:(double)beta {
  (void)device, (void)transposeLeft, (void)transposeRight, (void)resultRows;
  (void)resultColumns, (void)interiorColumns, (void)alpha, (void)beta;
  return [super init]; // SimMultiplication has its own initializer
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                   leftMatrix:(MPSMatrix *)leftMatrix
                  rightMatrix:(MPSMatrix *)rightMatrix
                 resultMatrix:(MPSMatrix *)resultMatrix {
  SimCommandBuffer *b = (SimCommandBuffer *)commandBuffer;
  CHECK(b->encoder == nil, @"a product while an encoder is open");
  struct command *c = [b add:MULTIPLY];
  c->what = [self retain];
  c->from = [leftMatrix retain];
  c->to = [rightMatrix retain];
  c->result = [resultMatrix retain];
}
@end

@implementation SimMultiplication
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns
                         alpha:(double)a
                          beta:(double)b {
  self = [super initWithDevice:device
                 transposeLeft:transposeLeft
                transposeRight:transposeRight
                    resultRows:resultRows
                 resultColumns:resultColumns
               interiorColumns:interiorColumns
                         alpha:a
                          beta:b];
  simmetal_count(GAUGE_OBJECTS, 1);
  left = transposeLeft;
  right = transposeRight;
  rows = resultRows;
  columns = resultColumns;
  interior = interiorColumns;
  alpha = a;
  beta = b;
  return self;
}
- (void)dealloc {
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
@end

static void *element(SimMatrix *m, NSUInteger row, NSUInteger column) {
  NSUInteger size = m->type == MPSDataTypeFloat16 ? 2 : 4;
  return m->buffer->device + m->offset + row * m->rowBytes + column * size;
}

// Conversions of halves, because not every clang has the type.
static double from_half(uint16_t h) {
  int exponent = h >> 10 & 31, bits = h & 1023;
  double v = exponent == 0    ? ldexp(bits, -24)
             : exponent == 31 ? (bits != 0 ? NAN : INFINITY)
                              : ldexp(bits + 1024, exponent - 25);
  return h >> 15 != 0 ? -v : v;
}
static uint16_t to_half(double v) {
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  v = fabs(v);
  if (v == 0 || isnan(v))
    return v == 0 ? sign : 0x7e00;
  if (v >= 65520) // half way between the largest half and the next power of two
    return sign | 0x7c00;
  int exponent;
  frexp(v, &exponent); // v < 2^exponent
  exponent = exponent < -13 ? -13 : exponent;
  // In units of the last place; if it rounds up to 2048, that is 1024 of the next exponent.
  return (uint16_t)(sign + ((exponent + 13) << 10) + (int)nearbyint(ldexp(v, 11 - exponent)));
}

static double load(SimMatrix *m, NSUInteger row, NSUInteger column) {
  void *p = element(m, row, column);
  return m->type == MPSDataTypeFloat16 ? from_half(*(uint16_t *)p) : (double)*(float *)p;
}

// Sums are computed in float, as csrc/shim.h requires.
NSError *sim_multiply(struct command *c) {
  SimMultiplication *op = c->what;
  SimMatrix *a = c->from, *b = c->to, *r = c->result;
  for (NSUInteger i = 0; i < op->rows; i++)
    for (NSUInteger j = 0; j < op->columns; j++) {
      float sum = 0;
      for (NSUInteger k = 0; k < op->interior; k++)
        sum += (float)((op->left ? load(a, k, i) : load(a, i, k)) *
                       (op->right ? load(b, j, k) : load(b, k, j)));
      double v = op->alpha * (double)sum;
      if (op->beta != 0)
        v += op->beta * load(r, i, j);
      if (r->type == MPSDataTypeFloat16)
        *(uint16_t *)element(r, i, j) = to_half(v);
      else
        *(float *)element(r, i, j) = (float)v;
    }
  return nil;
}
