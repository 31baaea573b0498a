// cache.c keeps what the driver compiles when a pipeline is made. The bytes are the facts, and the driver's data.

#include "state.h"

// header is how the data of a pipeline cache begin, in version 1 of its form.
struct header {
  uint32_t bytes, version, vendor, device;
  uint8_t uuid[16];
};

// vulkan_pipelines_put begins with the data of an earlier process. Drivers trust them, so that the caller knows where
// they come from; that they are of this device and driver is checked here, too.
static int32_t vulkan_pipelines_put(cs_device *d, const unsigned char *data, uint64_t bytes, cs_error *err) {
  const VkPhysicalDeviceProperties *p = &d->t.properties.properties;
  struct header h;
  int32_t status = present(d, err);
  if (status != CS_OK)
    return status;
  uint32_t facts;
  if (bytes < sizeof facts + sizeof h)
    return tell(err, CS_FORMAT, 0, "the pipelines have no header");
  memcpy(&facts, data, sizeof facts);
  data += sizeof facts;
  bytes -= sizeof facts;
  memcpy(&h, data, sizeof h);
  if (h.bytes < sizeof h || h.version != 1 || h.vendor != p->vendorID || h.device != p->deviceID ||
      memcmp(h.uuid, p->pipelineCacheUUID, sizeof h.uuid) != 0)
    return tell(err, CS_FORMAT, 0, "the pipelines are of another device or driver");
  VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                    .initialDataSize = bytes,
                                    .pInitialData = data};
  VkPipelineCache made = 0;
  status = CALL(d, err, CreatePipelineCache, &info, NULL, &made);
  if (status != CS_OK)
    return status;
  d->vk.DestroyPipelineCache(d->handle, d->cache, NULL);
  d->cache = made;
  pthread_mutex_lock(&d->tools);
  if (known_facts(d) == 0)
    know_facts(d, facts);
  pthread_mutex_unlock(&d->tools);
  return CS_OK;
}

// vulkan_pipelines_get returns nothing for a device that has made no pipeline.
static int32_t vulkan_pipelines_get(cs_device *d, cs_blob *out, cs_error *err) {
  uint32_t facts = 0;
  int32_t status = present(d, err), code = VK_INCOMPLETE;
  if (status != CS_OK || !atomic_load(&d->pipelines))
    return status;
  pthread_mutex_lock(&d->tools);
  facts = known_facts(d);
  pthread_mutex_unlock(&d->tools);
  unsigned char *data = NULL;
  size_t bytes = 0;
  while (code == VK_INCOMPLETE) { // a pipeline that is made meanwhile makes it longer
    free(data);
    code = d->vk.GetPipelineCacheData(d->handle, d->cache, &bytes, NULL);
    data = malloc(sizeof facts + bytes);
    if (data == NULL)
      return no_host_memory(err);
    if (code >= 0)
      code = d->vk.GetPipelineCacheData(d->handle, d->cache, &bytes, data + sizeof facts);
  }
  status = on_device(d, code, "GetPipelineCacheData", err);
  if (status != CS_OK) {
    free(data);
    return status;
  }
  memcpy(data, &facts, sizeof facts);
  out->data = data;
  out->bytes = sizeof facts + bytes;
  return CS_OK;
}
