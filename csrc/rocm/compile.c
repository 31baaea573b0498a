// compile.c asks which architectures hipRTC knows. It needs no device.

#include "rocm.h"

// hipRTC ends the whole process if it does not know an architecture. So the shim first asks comgr,
// the library that hipRTC compiles with, and compiles nothing without it.

static const char isa_prefix[] = "amdgcn-amd-amdhsa--";

static int32_t no_comgr(cs_error *err) {
  return tell(err, CS_UNSUPPORTED, 0,
              "libamd_comgr was not found: which architectures hipRTC knows cannot be told");
}

static int32_t rocm_targets(cs_lib *base, char *text, uint64_t bytes, cs_error *err) {
  struct rocm_lib *lib = (struct rocm_lib *)base;
  if (base->others[0].library == NULL)
    return no_comgr(err);
  size_t count = 0;
  int code = lib->isa.count(&count);
  struct gpu_note n = note_in(text, bytes);
  for (size_t i = 0; i < count && code == 0; i++) {
    const char *name = NULL;
    code = lib->isa.name(i, &name);
    if (code == 0 && name != NULL && strncmp(name, isa_prefix, strlen(isa_prefix)) == 0)
      add(&n, "%s%s", n.used > 0 ? " " : "", name + strlen(isa_prefix));
  }
  return code == 0 ? CS_OK : tell(err, CS_FAILED, code, "amd_comgr_get_isa_name: code %d", code);
}

// known reports whether hipRTC knows a target: an architecture, with or without features such as
// ":xnack-".
static int known(struct rocm_lib *lib, const char *target) {
  char name[128];
  int n = snprintf(name, sizeof name, "%s%s", isa_prefix, target);
  if (strncmp(target, "gfx", 3) != 0 || n < 0 || (size_t)n >= sizeof name)
    return 0;
  struct comgr_action action;
  if (lib->isa.create(&action) != 0)
    return 0;
  int code = lib->isa.set_name(action, name);
  lib->isa.destroy(action);
  return code == 0;
}

// check_target refuses options without a target, or with one that is not known.
static int32_t check_target(cs_lib *base, const char *options, cs_error *err) {
  static const char flag[] = "--offload-arch=";
  int targets = 0;
  if (base->others[0].library == NULL)
    return no_comgr(err);
  for (const char *o = options; *o != '\0'; o += strlen(o) + 1) {
    if (strncmp(o, flag, sizeof flag - 1) != 0)
      continue;
    targets++;
    if (!known((struct rocm_lib *)base, o + sizeof flag - 1))
      return tell(err, CS_INVALID, 0, "hipRTC does not know the architecture \"%.64s\"",
                  o + sizeof flag - 1);
  }
  return targets == 1 ? CS_OK : tell(err, CS_INVALID, 0, "%d options %s, not 1", targets, flag);
}
