// null.h controls the vendor that does nothing. All of it is for one test at a time.

#ifndef CONCORD_NULL_H
#define CONCORD_NULL_H

#include <stdint.h>

#include "../../../csrc/shim.h"

// null_table has every entry; null_bare only those that are not optional.
extern const concord_shim null_table, null_bare;

// null_reset ends everything that the functions below began.
void null_reset(void);

// null_fail makes an entry fail once, after it worked that many times.
void null_fail(const char *entry, int32_t after, int32_t status);

// null_break makes the next launch break its stream: it is taken, and every later call that looks
// at the stream, or an event behind the launch, fails.
void null_break(int32_t status);

// null_hold keeps everything that is queued from being done until null_hold(0).
void null_hold(int32_t on);

// null_devices and null_drivers change what is found.
void null_devices(int32_t count);
void null_absent(int32_t driver, int32_t compiler);

// null_live counts the objects of a kind that are not released: "device", "stream", "event",
// "module", "graph", "memory", "blob".
int64_t null_live(const char *kind);

// null_calls counts the calls of an entry.
int64_t null_calls(const char *entry);

// null_last is the last launch: a hash of every argument and its data, and the sizes.
typedef struct null_launch {
  uint64_t groups[3], group[3];
  uint32_t count;
  uint64_t sum;
} null_launch;
null_launch null_last(void);

// null_product is the last matrix product.
cs_gemm null_product(void);

// null_nothing is an empty call, to compare with.
int32_t null_nothing(void);

#endif
