// memory.c allocates buffers, finds them by address, and destroys what batches do not use any more.

#include "state.h"

// -- tables --

static uint64_t key(const struct table *t, const cs_device *d, size_t i) {
  return t == &d->by_address ? t->list[i]->address : (uint64_t)(uintptr_t)t->list[i]->host;
}

// after returns the index of the first block that begins beyond an address.
static size_t after(const struct table *t, const cs_device *d, uint64_t address) {
  size_t low = 0, high = t->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (key(t, d, middle) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// find returns the block that contains all bytes from an address on, and the offset in its buffer.
static int32_t find_in(cs_device *d, const struct table *t, uint64_t address, uint64_t bytes, struct place *out,
                       cs_error *err) {
  struct block *found = NULL;
  uint64_t begin = 0;
  pthread_rwlock_rdlock(&d->memory);
  size_t i = after(t, d, address);
  if (i > 0) {
    found = t->list[i - 1];
    begin = key(t, d, i - 1);
  }
  pthread_rwlock_unlock(&d->memory);
  if (found == NULL || address - begin > found->bytes || bytes > found->bytes - (address - begin))
    return tell(err, CS_INVALID, 0, "no buffer of this device contains the %llu bytes at %#llx",
                (unsigned long long)bytes, (unsigned long long)address);
  *out = (struct place){found, found->offset + (address - begin)};
  return CS_OK;
}

static int32_t find(cs_device *d, uint64_t address, uint64_t bytes, struct place *out, cs_error *err) {
  return find_in(d, &d->by_address, address, bytes, out, err);
}

static int32_t insert(cs_device *d, struct table *t, struct block *b, uint64_t address, cs_error *err) {
  if (t->count == t->room) {
    size_t room = t->room > 0 ? 2 * t->room : 64;
    struct block **more = realloc(t->list, room * sizeof(struct block *));
    if (more == NULL)
      return no_host_memory(err);
    t->list = more;
    t->room = room;
  }
  size_t i = after(t, d, address);
  memmove(t->list + i + 1, t->list + i, (t->count - i) * sizeof *t->list);
  t->list[i] = b;
  t->count++;
  return CS_OK;
}

static struct block *take(cs_device *d, struct table *t, uint64_t address) {
  size_t i = after(t, d, address);
  if (i == 0 || key(t, d, i - 1) != address)
    return NULL;
  struct block *b = t->list[i - 1];
  memmove(t->list + i - 1, t->list + i, (t->count - i) * sizeof *t->list);
  t->count--;
  return b;
}

// -- types of memory --

#define KNOWN_FLAGS                                                                                \
  ((uint32_t)(VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |          \
              VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT))

// best_type returns the type of memory with all flags of must, most of want and fewest of avoid. That the host caches
// it outweighs that it is local. Types with other flags need features that are not switched on.
static uint32_t best_type(const cs_device *d, uint32_t allowed, uint32_t must, uint32_t want, uint32_t avoid) {
  const VkPhysicalDeviceMemoryProperties *m = &d->t.memory;
  uint32_t best = NONE;
  int most = -100;
  for (uint32_t i = 0; i < m->memoryTypeCount; i++) {
    uint32_t has = m->memoryTypes[i].propertyFlags;
    if ((allowed & 1u << i) == 0 || (has & must) != must || (has & ~KNOWN_FLAGS) != 0)
      continue;
    int score = 2 * __builtin_popcount(has & want) - __builtin_popcount(has & avoid) +
                ((has & want & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0);
    if (score > most) {
      most = score;
      best = i;
    }
  }
  return best;
}

// choose_types chooses the memory for each kind. Where host and device share one memory, all of it is
// mapped and cached by the host. Elsewhere the device's is its own, mapped where the host can write to
// all of it, and other memory is the host's.
static int32_t choose_types(cs_device *d, cs_error *err) {
  const uint32_t local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const uint32_t mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const uint32_t cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  VkBuffer probe = 0;
  VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                             .size = 256,
                             .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
  int32_t status = CALL(d, err, CreateBuffer, &info, NULL, &probe);
  if (status != CS_OK)
    return status;
  VkMemoryRequirements need;
  d->vk.GetBufferMemoryRequirements(d->handle, probe, &need);
  d->vk.DestroyBuffer(d->handle, probe, NULL);
  uint32_t allowed = need.memoryTypeBits;
  uint32_t *kinds = d->kinds;
  if (d->t.unified) {
    kinds[CS_ON_DEVICE] = best_type(d, allowed, mapped, local | cached, 0);
  } else {
    uint32_t bar = best_type(d, allowed, local | mapped, 0, 0);
    if (bar != NONE && d->t.memory.memoryHeaps[d->t.memory.memoryTypes[bar].heapIndex].size >= d->t.heap_bytes)
      kinds[CS_ON_DEVICE] = bar;
    else
      kinds[CS_ON_DEVICE] = best_type(d, allowed, local, 0, mapped | cached);
  }
  kinds[CS_PINNED] = kinds[CS_UNIFIED] = best_type(d, allowed, mapped, cached, d->t.unified ? 0 : local);
  if (d->t.unified)
    kinds[CS_UNIFIED] = kinds[CS_ON_DEVICE];
  if (kinds[CS_ON_DEVICE] == NONE || kinds[CS_PINNED] == NONE)
    return tell(err, CS_UNSUPPORTED, 0, "the driver has no type of memory for buffers with addresses");
  return CS_OK;
}

// -- whole buffers --

static void end_whole(cs_device *d, struct dead *dead) {
  struct block *b = (struct block *)dead;
  d->vk.DestroyBuffer(d->handle, b->buffer, NULL);
  d->vk.FreeMemory(d->handle, b->memory, NULL); // unmaps it
  free(b);
}

// back gives a buffer memory, and maps it.
static int32_t back(cs_device *d, uint32_t type, struct block *b, cs_error *err) {
  VkMemoryRequirements need;
  d->vk.GetBufferMemoryRequirements(d->handle, b->buffer, &need);
  VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                     .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                               .pNext = &flags,
                               .allocationSize = need.size,
                               .memoryTypeIndex = type};
  int32_t status = CALL(d, err, AllocateMemory, &info, NULL, &b->memory);
  if (status == CS_OK)
    status = CALL(d, err, BindBufferMemory, b->buffer, b->memory, 0);
  uint32_t has = d->t.memory.memoryTypes[type].propertyFlags;
  const uint32_t mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  void *host = NULL;
  if (status == CS_OK && (has & mapped) == mapped)
    status = CALL(d, err, MapMemory, b->memory, 0, UINT64_MAX, 0, &host); // VK_WHOLE_SIZE
  b->host = host;
  b->cached = (has & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  return status;
}

// heap_of returns the number of the heap that memory of a kind is in.
static uint32_t heap_of(const cs_device *d, uint8_t kind) { return d->t.memory.memoryTypes[d->kinds[kind]].heapIndex; }

// make_whole makes a buffer of its own. Drivers do not promise addresses that are multiples of ADDRESS_UNIT: where one
// is not, the block begins behind the beginning of its buffer.

static int32_t make_whole(cs_device *d, uint8_t kind, uint64_t bytes, uint64_t more, struct block **out,
                          cs_error *err) {
  struct block *b = calloc(1, sizeof *b);
  if (b == NULL)
    return no_host_memory(err);
  b->dead.end = end_whole;
  b->bytes = bytes;
  VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                             .size = ((bytes + 15) & ~(uint64_t)15) + more,
                             .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
  int32_t status = CALL(d, err, CreateBuffer, &info, NULL, &b->buffer);
  if (status == CS_OK)
    status = back(d, d->kinds[kind], b, err);
  if (status != CS_OK) {
    end_whole(d, &b->dead);
    return status;
  }
  VkBufferDeviceAddressInfo where = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = b->buffer};
  b->address = d->vk.GetBufferDeviceAddress(d->handle, &where);
  uint64_t off = -b->address % ADDRESS_UNIT;
  if (off > more) {
    end_whole(d, &b->dead);
    return make_whole(d, kind, bytes, ADDRESS_UNIT, out, err);
  }
  b->address += off;
  b->offset = off;
  b->host = b->host != NULL ? b->host + off : NULL;
  *out = b;
  return CS_OK;
}

// -- what batches may still use --

// oldest returns the serial of the oldest batch of the device that is not done.
static uint64_t oldest(cs_device *d) {
  uint64_t least = UINT64_MAX;
  for (cs_stream *s = d->streams; s != NULL; s = s->next) {
    uint64_t serial = atomic_load(&s->oldest);
    least = serial < least ? serial : least;
  }
  return least;
}

static void look(cs_stream *s);

// collect destroys what no batch uses any more.
static void collect(cs_device *d) {
  pthread_mutex_lock(&d->lock);
  if (d->dead == NULL) {
    pthread_mutex_unlock(&d->lock);
    return;
  }
  for (cs_stream *s = d->streams; s != NULL; s = s->next)
    if (pthread_mutex_trylock(&s->lock) == 0) { // a stream that is in use tells what it knew
      look(s);
      pthread_mutex_unlock(&s->lock);
    }
  uint64_t least = oldest(d);
  struct dead *list = NULL, **end = &list;
  while (d->dead != NULL && d->dead->serial < least) {
    *end = d->dead;
    end = &d->dead->next;
    d->dead = d->dead->next;
  }
  *end = NULL;
  if (d->dead == NULL)
    d->dead_end = &d->dead;
  pthread_mutex_unlock(&d->lock);
  while (list != NULL) {
    struct dead *next = list->next;
    list->end(d, list);
    list = next;
  }
}

// bury destroys an object as soon as the batches that were begun before are done.
static void bury(cs_device *d, struct dead *dead) {
  pthread_mutex_lock(&d->lock);
  dead->next = NULL;
  dead->serial = atomic_load(&d->begun);
  *d->dead_end = dead;
  d->dead_end = &dead->next;
  pthread_mutex_unlock(&d->lock);
  collect(d);
}

// -- slabs --

// end_slot gives a slot back to its slab. The last one of a slab ends the slab, too, since the pool
// above keeps what it needs.
static void end_slot(cs_device *d, struct dead *dead) {
  struct block *b = (struct block *)dead;
  struct slab *slab = b->slab;
  struct block *whole = NULL;
  pthread_mutex_lock(&d->lock);
  slab->free[slab->free_count++] = (uint16_t)((b->address - slab->whole->address) >> slab->size);
  if (--slab->used == 0) {
    struct slab **at = &d->slabs[slab->kind][slab->size - SLOT_LEAST];
    while (*at != slab)
      at = &(*at)->next;
    *at = slab->next;
    whole = slab->whole;
    free(slab);
  }
  pthread_mutex_unlock(&d->lock);
  free(b);
  if (whole != NULL)
    end_whole(d, &whole->dead);
}

// slab_size returns the binary logarithm of the bytes of a slab.
static int slab_size(int slot) { return slot + SLAB_SLOTS > SLAB_LEAST ? slot + SLAB_SLOTS : SLAB_LEAST; }

static struct slab *new_slab(uint8_t kind, int size, struct block *whole) {
  uint32_t slots = 1u << (slab_size(size) - size);
  struct slab *slab = calloc(1, sizeof *slab + slots * sizeof slab->free[0]);
  if (slab == NULL)
    return NULL;
  *slab = (struct slab){.whole = whole, .kind = kind, .size = size, .slots = slots, .free_count = slots};
  for (uint32_t i = 0; i < slots; i++)
    slab->free[i] = (uint16_t)(slots - 1 - i);
  return slab;
}

static int32_t make_slot(cs_device *d, uint8_t kind, uint64_t bytes, struct block **out, cs_error *err) {
  int size = SLOT_LEAST;
  while ((uint64_t)1 << size < bytes)
    size++;
  struct block *b = calloc(1, sizeof *b), *whole = NULL;
  if (b == NULL)
    return no_host_memory(err);
  int32_t status = CS_OK;
  pthread_mutex_lock(&d->lock);
  struct slab **first = &d->slabs[kind][size - SLOT_LEAST], *slab = *first;
  while (slab != NULL && slab->free_count == 0)
    slab = slab->next;
  if (slab == NULL) {
    status = make_whole(d, kind, (uint64_t)1 << slab_size(size), 0, &whole, err);
    if (status == CS_OK && (slab = new_slab(kind, size, whole)) == NULL) {
      end_whole(d, &whole->dead);
      status = no_host_memory(err);
    }
    if (status == CS_OK) {
      slab->next = *first;
      *first = slab;
    }
  }
  if (status == CS_OK) {
    slab->used++;
    uint64_t at = (uint64_t)slab->free[--slab->free_count] << size;
    whole = slab->whole;
    *b = (struct block){.dead = {.end = end_slot}, .address = whole->address + at, .bytes = bytes,
                        .buffer = whole->buffer, .offset = whole->offset + at,
                        .host = whole->host != NULL ? whole->host + at : NULL, .cached = whole->cached, .slab = slab};
  }
  pthread_mutex_unlock(&d->lock);
  if (status == CS_OK)
    *out = b;
  else
    free(b);
  return status;
}

// -- the entries --

static int32_t make_block(cs_device *d, uint8_t kind, uint64_t bytes, struct block **out, cs_error *err) {
  if (bytes <= (uint64_t)1 << SLOT_MOST)
    return make_slot(d, kind, bytes, out, err);
  return make_whole(d, kind, bytes, 0, out, err);
}

// enter adds a block to the tables.
static int32_t enter(cs_device *d, struct block *b, cs_error *err) {
  pthread_rwlock_wrlock(&d->memory);
  int32_t status = insert(d, &d->by_address, b, b->address, err);
  if (status == CS_OK && b->host != NULL) {
    status = insert(d, &d->by_host, b, (uint64_t)(uintptr_t)b->host, err);
    if (status != CS_OK)
      take(d, &d->by_address, b->address);
  }
  pthread_rwlock_unlock(&d->memory);
  return status;
}

static int32_t finish_all(cs_device *d, cs_error *err);

// count_bytes adds to what is allocated in the device's heap.
static void count_bytes(cs_device *d, uint8_t kind, uint64_t bytes) {
  pthread_mutex_lock(&d->lock);
  if (heap_of(d, kind) == d->t.device_heap)
    d->allocated += bytes;
  pthread_mutex_unlock(&d->lock);
}

static int32_t vulkan_alloc(cs_device *d, uint8_t kind, uint64_t bytes, cs_memory *out, cs_error *err) {
  if (bytes == 0)
    return tell(err, CS_INVALID, 0, "allocation of 0 bytes");
  if (kind > CS_UNIFIED)
    return tell(err, CS_INVALID, 0, "no memory of kind %d", kind);
  int32_t status = present(d, err);
  if (status != CS_OK)
    return status;
  uint64_t most = largest(&d->t, d->t.memory.memoryHeaps[heap_of(d, kind)].size);
  if (bytes > most)
    return tell(err, CS_TOO_LARGE, 0, "a buffer has at most %llu bytes", (unsigned long long)most);
  struct block *b = NULL;
  cs_error first;
  status = make_block(d, kind, bytes, &b, &first);
  if (status == CS_NO_MEMORY && finish_all(d, err) == CS_OK) { // memory that was freed may have waited for batches
    collect(d);
    status = make_block(d, kind, bytes, &b, &first);
  }
  if (status != CS_OK)
    *err = first;
  if (status == CS_OK && (status = enter(d, b, err)) != CS_OK)
    b->dead.end(d, &b->dead);
  if (status != CS_OK)
    return status;
  count_bytes(d, kind, bytes);
  *out = (cs_memory){b->address, b->cached || kind != CS_ON_DEVICE ? (uint64_t)(uintptr_t)b->host : 0};
  return CS_OK;
}

static int32_t vulkan_free(cs_device *d, uint8_t kind, uint64_t address, cs_error *err) {
  pthread_rwlock_wrlock(&d->memory);
  struct block *b = take(d, &d->by_address, address);
  if (b != NULL && b->host != NULL)
    take(d, &d->by_host, (uint64_t)(uintptr_t)b->host);
  pthread_rwlock_unlock(&d->memory);
  if (b == NULL)
    return tell(err, CS_INVALID, 0, "no buffer begins at %#llx", (unsigned long long)address);
  count_bytes(d, kind, -b->bytes);
  bury(d, &b->dead);
  return CS_OK;
}
