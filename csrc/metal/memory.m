// memory.m allocates buffers, and finds them by address.

#include "state.h"

// after returns the index of the first block that begins beyond an address.
static size_t after(const cs_device *d, uint64_t address) {
  size_t low = 0, high = d->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (d->blocks[middle]->address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// find returns the block that contains all bytes from an address on, and the offset in it.
static int32_t find(cs_device *d, uint64_t address, uint64_t bytes, struct place *out,
                    cs_error *err) {
  struct block *found = NULL;
  pthread_rwlock_rdlock(&d->memory);
  size_t i = after(d, address);
  if (i > 0)
    found = d->blocks[i - 1];
  pthread_rwlock_unlock(&d->memory);
  if (found == NULL || address - found->address > found->bytes ||
      bytes > found->bytes - (address - found->address))
    return tell(err, CS_INVALID, 0, "no buffer of this device contains the %llu bytes at %#llx",
                (unsigned long long)bytes, (unsigned long long)address);
  *out = (struct place){found, address - found->address};
  return CS_OK;
}

// insert adds a block to the table, and gives it an address if the host cannot access it.
static int32_t insert(cs_device *d, struct block *b, cs_error *err) {
  pthread_rwlock_wrlock(&d->memory);
  if (d->count == d->room) {
    size_t room = d->room > 0 ? 2 * d->room : 64;
    struct block **more = realloc(d->blocks, room * sizeof *more);
    if (more == NULL) {
      pthread_rwlock_unlock(&d->memory);
      return no_host_memory(err);
    }
    d->blocks = more;
    d->room = room;
  }
  if (b->host != NULL) {
    b->address = (uint64_t)(uintptr_t)b->host;
  } else {
    const uint64_t page = 1 << 16; // one page apart, so that an overrun does not reach the next block
    b->address = d->next;
    d->next += (b->bytes + page - 1) / page * page + page;
  }
  size_t i = after(d, b->address);
  memmove(d->blocks + i + 1, d->blocks + i, (d->count - i) * sizeof *d->blocks);
  d->blocks[i] = b;
  d->count++;
  pthread_rwlock_unlock(&d->memory);
  return CS_OK;
}

// take removes the block that begins at an address from the table.
static struct block *take(cs_device *d, uint64_t address) {
  struct block *b = NULL;
  pthread_rwlock_wrlock(&d->memory);
  size_t i = after(d, address);
  if (i > 0 && d->blocks[i - 1]->address == address) {
    b = d->blocks[i - 1];
    memmove(d->blocks + i - 1, d->blocks + i, (d->count - i) * sizeof *d->blocks);
    d->count--;
  }
  pthread_rwlock_unlock(&d->memory);
  return b;
}

// options_of selects the storage mode. If host and device share one memory, all buffers are in it.
// A GPU with its own memory has the buffers there that the host cannot access. Pinned memory is in
// the host's memory, and unified memory has a copy on both sides, which touch and commit keep
// equal.
static int32_t options_of(cs_device *d, uint8_t kind, MTLResourceOptions *out, cs_error *err) {
  switch (kind) {
  case CS_ON_DEVICE:
    *out = d->unified ? MTLResourceStorageModeShared : MTLResourceStorageModePrivate;
    return CS_OK;
  case CS_PINNED:
    *out = MTLResourceStorageModeShared;
    return CS_OK;
  case CS_UNIFIED:
    *out = d->unified ? MTLResourceStorageModeShared : MTLResourceStorageModeManaged;
    return CS_OK;
  }
  return tell(err, CS_INVALID, 0, "no memory of kind %d", kind);
}

static int32_t alloc_block(cs_device *d, uint8_t kind, uint64_t bytes, cs_memory *out,
                           cs_error *err) {
  MTLResourceOptions options = 0;
  int32_t status = options_of(d, kind, &options, err);
  if (status != CS_OK)
    return status;
  if (bytes > d->max_buffer)
    return tell(err, CS_TOO_LARGE, 0, "a buffer has at most %llu bytes",
                (unsigned long long)d->max_buffer);
  struct block *b = calloc(1, sizeof *b);
  if (b == NULL)
    return no_host_memory(err);
  b->buffer = [d->handle newBufferWithLength:(NSUInteger)bytes options:options];
  if (b->buffer == nil) {
    free(b);
    return tell(err, CS_NO_MEMORY, 0, "newBufferWithLength: no memory for %llu bytes",
                (unsigned long long)bytes);
  }
  b->refs = 1;
  b->bytes = bytes;
  b->managed = options == MTLResourceStorageModeManaged;
  b->host = options == MTLResourceStorageModePrivate ? NULL : [b->buffer contents];
  status = insert(d, b, err);
  if (status != CS_OK) {
    [b->buffer release];
    free(b);
    return status;
  }
  *out = (cs_memory){b->address, (uint64_t)(uintptr_t)b->host};
  return CS_OK;
}

static int32_t metal_alloc(cs_device *d, uint8_t kind, uint64_t bytes, cs_memory *out,
                           cs_error *err) {
  if (bytes == 0)
    return tell(err, CS_INVALID, 0, "allocation of 0 bytes");
  int32_t status = present(d, err);
  if (status == CS_OK)
    RUN(status, err, alloc_block(d, kind, bytes, out, err));
  return status;
}

// drop_block releases a reference. It does not wait, as command buffers keep the buffers that they
// use.
static void drop_block(struct block *b) {
  if (--b->refs > 0)
    return;
  [b->buffer release];
  free(b);
}

static int32_t metal_free(cs_device *d, uint8_t kind, uint64_t address, cs_error *err) {
  (void)kind;
  struct block *b = take(d, address);
  if (b == NULL)
    return tell(err, CS_INVALID, 0, "no buffer begins at %#llx", (unsigned long long)address);
  int32_t status = CS_OK;
  RUN(status, err, (drop_block(b), CS_OK));
  return status;
}
