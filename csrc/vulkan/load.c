// load.c opens the loader, makes an instance, and looks up functions.

#include "state.h"

static pthread_mutex_t libs_lock = PTHREAD_MUTEX_INITIALIZER;
static cs_lib *libs;

// note appends a line to a text.
__attribute__((format(printf, 3, 4))) static void note(char *text, uint64_t bytes, const char *format, ...) {
  size_t used = bytes > 0 ? strnlen(text, bytes) : 0;
  if (used + 1 >= bytes)
    return;
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, bytes - used, format, args);
  va_end(args);
}

// next_name returns the first of the names, with *names at the one behind it, or NULL.
static const char *next_name(const char **names) {
  const char *name = *names;
  *names += strlen(name) + 1;
  return *name != '\0' ? name : NULL;
}

// as_function stores an address in a pointer to a function.
static void as_function(void *to, const void *address) { memcpy(to, &address, sizeof address); }

static void *open_loader(const char *names, char *tried, uint64_t bytes, const char **found) {
  for (const char *name; *names != '\0' && (name = next_name(&names)) != NULL;) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      const char *why = dlerror();
      const char *rest = why != NULL ? why : "no reason";
      size_t n = strlen(name);
      if (strncmp(rest, name, n) == 0 && strncmp(rest + n, ": ", 2) == 0)
        rest += n + 2;
      note(tried, bytes, "%s: not found: %s\n", name, rest);
      continue;
    }
    if (dlsym(library, "vkGetInstanceProcAddr") != NULL) {
      note(tried, bytes, "%s: found\n", name);
      *found = name;
      return library;
    }
    note(tried, bytes, "%s: it has no vkGetInstanceProcAddr\n", name);
    dlclose(library);
  }
  return NULL;
}

#define LOOK_UP(result, name, parameters)                                                          \
  as_function(&api->name, *(void **)&(PFN_vkVoidFunction){get(of, "vk" #name)});                   \
  if (api->name == NULL)                                                                           \
    return "vk" #name;

// The following return the name of a function that is missing, or NULL.
static const char *look_up_library(struct instance_api *api, PFN_vkVoidFunction (*get)(VkInstance, const char *)) {
  VkInstance of = NULL;
  LIBRARY_FUNCTIONS(LOOK_UP)
  return NULL;
}

static const char *look_up_instance(struct instance_api *api, PFN_vkVoidFunction (*get)(VkInstance, const char *),
                                    VkInstance of) {
  INSTANCE_FUNCTIONS(LOOK_UP)
  return NULL;
}

static const char *look_up_device(struct device_api *api, PFN_vkVoidFunction (*get)(VkDevice, const char *),
                                  VkDevice of) {
  DEVICE_FUNCTIONS(LOOK_UP)
  return NULL;
}

static int32_t vulkan_open(const concord_shim *shim, const char *driver_names, const char *compiler_names,
                           cs_lib **lib, char *tried, uint64_t tried_bytes, cs_error *err) {
  (void)shim;
  (void)compiler_names;
  if (tried_bytes > 0)
    tried[0] = '\0';
  const char *found = NULL;
  void *driver = open_loader(driver_names, tried, tried_bytes, &found);
  if (driver == NULL)
    return tell(err, CS_NO_DEVICE, 0, "the Vulkan loader was not found");
  pthread_mutex_lock(&libs_lock);
  cs_lib *l = libs;
  while (l != NULL && l->driver != driver)
    l = l->next;
  if (l == NULL && (l = calloc(1, sizeof *l)) != NULL) {
    l->driver = driver;
    snprintf(l->path, sizeof l->path, "%s", found);
    as_function(&l->instance_proc, dlsym(driver, "vkGetInstanceProcAddr"));
    l->lacking = look_up_library(&l->vk, l->instance_proc);
    pthread_mutex_init(&l->lock, NULL);
    l->next = libs;
    libs = l;
  } else if (l != NULL) {
    dlclose(driver); // the first one stays
  }
  pthread_mutex_unlock(&libs_lock);
  if (l == NULL)
    return no_host_memory(err);
  *lib = l;
  return CS_OK;
}

static int32_t vulkan_has_driver(cs_lib *lib) { return lib->driver != NULL; }

static int32_t vulkan_has_compiler(cs_lib *lib) {
  (void)lib;
  return 0; // the compiler is Go's
}

static void vulkan_missing(cs_lib *lib, char *text, uint64_t bytes) {
  (void)lib;
  if (bytes > 0)
    text[0] = '\0';
}

// API_1_3 is version 1.3.0, VERSION the parts of a version.
#define API_1_3 ((uint32_t)1 << 22 | 3 << 12)
#define VERSION(v) (v) >> 22, (v) >> 12 & 0x3ff, (v)&0xfff

// versions returns the loader's number; that of a driver is its device's.
static int32_t vulkan_versions(cs_lib *lib, cs_versions *out, cs_error *err) {
  if (lib->lacking != NULL)
    return tell(err, CS_NO_DEVICE, 0, "the loader has no %s: it is older than Vulkan 1.1", lib->lacking);
  uint32_t version = 0;
  int32_t status = checked(lib->vk.EnumerateInstanceVersion(&version), "EnumerateInstanceVersion", err);
  if (status == CS_OK)
    *out = (cs_versions){.driver = (int32_t)version};
  return status;
}

// offers reports whether an extension of instances is there.
static int offers(cs_lib *lib, const char *name) {
  uint32_t n = 0;
  int yes = 0;
  if (lib->vk.EnumerateInstanceExtensionProperties(NULL, &n, NULL) < 0 || n == 0)
    return 0;
  VkExtensionProperties *list = calloc(n, sizeof *list);
  if (list != NULL && lib->vk.EnumerateInstanceExtensionProperties(NULL, &n, list) >= 0)
    for (uint32_t i = 0; i < n; i++)
      yes |= strcmp(list[i].extensionName, name) == 0;
  free(list);
  return yes;
}

static int32_t make_instance(cs_lib *lib, VkInstance *out, cs_error *err) {
  cs_versions v;
  int32_t status = vulkan_versions(lib, &v, err);
  if (status != CS_OK)
    return status;
  if ((uint32_t)v.driver < API_1_3)
    return tell(err, CS_NO_DEVICE, 0, "the loader is of Vulkan %u.%u.%u, and 1.3 is needed",
                VERSION((uint32_t)v.driver));
  VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .pApplicationName = "concord",
                                   .pEngineName = "concord",
                                   .apiVersion = API_1_3};
  const char *portability = "VK_KHR_portability_enumeration";
  int has = offers(lib, portability);
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                               .pApplicationInfo = &application,
                               .flags = has ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0,
                               .enabledExtensionCount = has ? 1 : 0,
                               .ppEnabledExtensionNames = &portability};
  VkInstance made = NULL;
  status = checked(lib->vk.CreateInstance(&info, NULL, &made), "CreateInstance", err);
  if (status != CS_OK)
    return status;
  const char *lacking = look_up_instance(&lib->vk, lib->instance_proc, made);
  if (lacking != NULL) {
    if (lib->vk.DestroyInstance != NULL)
      lib->vk.DestroyInstance(made, NULL);
    return tell(err, CS_NO_DEVICE, 0, "the loader has no %s", lacking);
  }
  *out = made;
  return CS_OK;
}

static int32_t enumerate(cs_lib *lib, cs_error *err) {
  uint32_t n = 0;
  int32_t status =
      checked(lib->vk.EnumeratePhysicalDevices(lib->instance, &n, NULL), "EnumeratePhysicalDevices", err);
  if (status != CS_OK)
    return status;
  lib->all = calloc(n + 1, sizeof *lib->all);
  lib->facts = calloc(n + 1, sizeof *lib->facts);
  if (lib->all == NULL || lib->facts == NULL)
    return no_host_memory(err);
  status = checked(lib->vk.EnumeratePhysicalDevices(lib->instance, &n, lib->all), "EnumeratePhysicalDevices", err);
  if (status == CS_OK)
    lib->count = n;
  return status;
}

// list_devices lists the devices. Nothing is kept if there is none, since the loader looks for drivers when an
// instance is made.
static int32_t list_devices(cs_lib *lib, cs_error *err) {
  int32_t status = make_instance(lib, &lib->instance, err);
  if (status != CS_OK)
    return status;
  status = enumerate(lib, err);
  if (status == CS_OK && lib->count > 0)
    return CS_OK;
  free(lib->all);
  free(lib->facts);
  lib->all = NULL;
  lib->facts = NULL;
  lib->vk.DestroyInstance(lib->instance, NULL);
  lib->instance = NULL;
  return status;
}

static int32_t vulkan_device_count(cs_lib *lib, int32_t *count, cs_error *err) {
  pthread_mutex_lock(&lib->lock);
  int32_t status = lib->count == 0 ? list_devices(lib, err) : CS_OK;
  if (status == CS_OK)
    *count = (int32_t)lib->count;
  pthread_mutex_unlock(&lib->lock);
  if (status != CS_OK)
    err->status = status = CS_NO_DEVICE;
  return status;
}

static int32_t device_at(cs_lib *lib, int32_t ordinal, VkPhysicalDevice *out, cs_error *err) {
  int32_t count = 0;
  int32_t status = vulkan_device_count(lib, &count, err);
  if (status != CS_OK)
    return status;
  if (ordinal < 0 || ordinal >= count)
    return tell(err, CS_NO_DEVICE, 0, "Vulkan has no device %d", ordinal);
  *out = lib->all[ordinal];
  return CS_OK;
}

static void vulkan_libraries(cs_lib *lib, cs_device *dev, char *text, uint64_t bytes) {
  (void)dev;
  cs_versions v = {0, 0, 0, 0};
  cs_error ignored;
  if (bytes > 0)
    text[0] = '\0';
  vulkan_versions(lib, &v, &ignored);
  Dl_info where;
  char *file = NULL;
  void *symbol = dlsym(lib->driver, "vkGetInstanceProcAddr");
  if (symbol != NULL && dladdr(symbol, &where) != 0 && where.dli_fname != NULL)
    file = realpath(where.dli_fname, NULL);
  note(text, bytes, "vulkan\t%u.%u.%u\t0\t%s\n", VERSION((uint32_t)v.driver), file != NULL ? file : lib->path);
  free(file);
}
