// prelude.h: the texts of prelude/, put into the library by the assembler.

#ifndef CONCORD_SIM_PRELUDE_H
#define CONCORD_SIM_PRELUDE_H

namespace sim {
namespace prelude {

#define SIM_TEXT(name)                                                                             \
  __asm__(".pushsection .rodata\n.local sim_prelude_" #name "\nsim_prelude_" #name ":\n"           \
          ".incbin \"prelude/" #name ".h\"\n.byte 0\n.popsection\n");                              \
  extern "C" const char sim_prelude_##name[] __attribute__((visibility("hidden")));                \
  static const char *const name = sim_prelude_##name;

SIM_TEXT(run)
SIM_TEXT(vector)
SIM_TEXT(math)
SIM_TEXT(device)
SIM_TEXT(cuda)
SIM_TEXT(hip)

#undef SIM_TEXT

} // namespace prelude
} // namespace sim

#endif
