// null.h controls the vendor that does nothing. Only one test at a time may use it.

#ifndef CONCORD_NULL_H
#define CONCORD_NULL_H

#include <stdint.h>

#include "../../../csrc/shim.h"

// null_table has every entry; null_bare only the required ones.
extern const concord_shim null_table, null_bare;

// null_reset undoes the effects of the functions below.
void null_reset(void);

// null_fail makes an entry fail once, after that many successful calls.
void null_fail(const char *entry, int32_t after, int32_t status);

// null_break makes the next launch break its stream: the launch itself succeeds, and every later
// call that checks the stream, or an event after the launch, fails.
void null_break(int32_t status);

// null_hold keeps queued work from being completed until null_hold(0).
void null_hold(int32_t on);

// null_devices and null_drivers set what is found.
void null_devices(int32_t count);
void null_absent(int32_t driver, int32_t compiler);

// null_live counts the objects of a kind that are not released: "device", "stream", "event",
// "module", "graph", "memory", "blob", "communicator".
int64_t null_live(const char *kind);

// null_calls counts the calls of an entry.
int64_t null_calls(const char *entry);

// null_last returns the last launch: a hash of every argument and its data, and the sizes.
typedef struct null_launch {
  uint64_t groups[3], group[3];
  uint32_t count;
  uint64_t sum;
} null_launch;
null_launch null_last(void);

// null_product returns the arguments of the last matrix product.
cs_gemm null_product(void);
cs_collective null_collective(void); // the last one

// null_nothing is an empty call, for comparing times.
int32_t null_nothing(void);

#endif
