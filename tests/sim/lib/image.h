// image.h: the format that a simulated compiler writes and a simulated driver loads: a header, a
// table of the kernels as text, and an ELF shared object made by g++. The same bytes in base64 are
// the textual form, in place of PTX.

#ifndef CONCORD_SIM_IMAGE_H
#define CONCORD_SIM_IMAGE_H

#include "../../../csrc/host/host.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sim {

// ---- declarations that prelude.h repeats ----
struct ImageParam {
  uint32_t bytes, align;
};
struct ImageEntry {
  uint32_t params;
  const ImageParam *param;
  concord_run run_item, run_block; // with a fiber per item; all items of a block in one call
  const void *address;
};
struct ImageTable {
  uint32_t abi, count;
  const ImageEntry *entries;
  volatile int *trap; // the reason why a kernel stopped itself: TRAP_*
};
enum { IMAGE_ABI = 1, TRAP_PLAIN = 1, TRAP_ASSERT = 2, TRAP_DIVERGED = 3 };

// ImageFacts holds the compiler's facts about a kernel.
struct ImageFacts {
  std::string name; // name for the driver
  int fibers;       // 1: it has barriers or warp functions
  unsigned shared;  // static bytes
  unsigned threads; // of a block at most; 0: no limit of its own
};

// image_pack makes the binary form, image_text the form in text.
std::string image_pack(const std::string &target, const std::vector<ImageFacts> &facts,
                       const std::string &elf);
std::string image_text(const std::string &target, const std::vector<ImageFacts> &facts,
                       const std::string &packed);

struct ImageKernel {
  ImageFacts facts;
  const ImageEntry *entry;
  std::vector<uint32_t> sizes;
};

// Image is a loaded program.
class Image {
public:
  // load reads either form. It returns 0, INVALID_IMAGE (200), INVALID_PTX (218), or NO_BINARY
  // (209) if accepts(target, is_text) returns false.
  static int load(const void *bytes, bool (*accepts)(const std::string &target, bool text),
                  std::string *why, Image **out);
  ~Image();
  const ImageKernel *kernel(const std::string &name) const;
  void *global(const std::string &name, size_t *bytes);
  const std::map<void *, size_t> &globals() const { return found; }
  int trap() const; // returns the trap and clears it
  std::string target;
  bool text = false;

private:
  int open(const std::string &elf, const std::vector<ImageFacts> &facts, std::string *why);
  void *handle = nullptr;
  const ImageTable *table = nullptr;
  std::map<std::string, ImageKernel> kernels;
  std::map<void *, size_t> found;
};

} // namespace sim

#endif
