// cache.c keeps what the driver compiles when a pipeline is made.

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
  if (bytes < sizeof h)
    return tell(err, CS_FORMAT, 0, "the pipelines have no header");
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
  return CS_OK;
}

static int32_t vulkan_pipelines_get(cs_device *d, cs_blob *out, cs_error *err) {
  size_t bytes = 0;
  int32_t status = present(d, err);
  if (status == CS_OK)
    status = CALL(d, err, GetPipelineCacheData, d->cache, &bytes, NULL);
  unsigned char *data = NULL;
  if (status == CS_OK && (data = malloc(bytes + 1)) == NULL)
    status = no_host_memory(err);
  if (status == CS_OK)
    status = CALL(d, err, GetPipelineCacheData, d->cache, &bytes, data);
  if (status != CS_OK) {
    free(data);
    return status;
  }
  out->data = data;
  out->bytes = bytes;
  return CS_OK;
}
