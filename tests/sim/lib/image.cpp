// image.cpp: programs as bytes, and as loaded libraries.

#include "image.h"
#include "flavour.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {
namespace {

struct Header {
  char magic[16];
  uint64_t bytes; // after the header
  uint64_t sum;   // of those
  uint64_t facts; // bytes of the words; then the ELF
  char target[24];
};
const char magic[16] = "concord-sim-elf";
const char banner[] = "//\n// Simulated PTX: made by g++ for this machine's processor\n//\n";
const char mark[] = "// concord-sim ";

uint64_t checksum(const char *p, size_t n) { // FNV-1a
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < n; i++)
    h = (h ^ static_cast<unsigned char>(p[i])) * 1099511628211u;
  return h;
}

const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(const std::string &in) {
  std::string out;
  unsigned bits = 0, have = 0;
  for (char c : in) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (have += 8; have >= 6; have -= 6)
      out += digits[bits >> (have - 6) & 63];
  }
  if (have > 0)
    out += digits[bits << (6 - have) & 63];
  return out;
}

bool unbase64(const char *p, std::string *out) {
  unsigned bits = 0, have = 0;
  for (; *p != 0 && *p != '\n'; p++) {
    const char *d = strchr(digits, *p);
    if (d == nullptr)
      return false;
    bits = bits << 6 | static_cast<unsigned>(d - digits);
    have += 6;
    if (have >= 8) {
      have -= 8;
      *out += static_cast<char>(bits >> have);
    }
  }
  return *p == '\n';
}

// starts compares without reading beyond the first difference, because the length of the caller's
// bytes is unknown.
bool starts(const char *p, const char *with) {
  for (; *with != 0; p++, with++)
    if (*p != *with)
      return false;
  return true;
}

} // namespace

std::string image_pack(const std::string &target, const std::vector<ImageFacts> &facts,
                       const std::string &elf) {
  std::ostringstream words;
  for (auto &f : facts)
    words << f.name << ' ' << f.fibers << ' ' << f.shared << ' ' << f.threads << '\n';
  std::string body = words.str();
  Header h{};
  memcpy(h.magic, magic, sizeof magic);
  snprintf(h.target, sizeof h.target, "%s", target.c_str());
  h.facts = body.size();
  body += elf;
  h.bytes = body.size();
  h.sum = checksum(body.data(), body.size());
  return std::string(reinterpret_cast<char *>(&h), sizeof h) + body;
}

std::string image_text(const std::string &target, const std::vector<ImageFacts> &facts,
                       const std::string &packed) {
  std::string out = std::string(banner) + "\n.version " + flavour.ptx + "\n.target " + target +
                    "\n.address_size 64\n\n";
  for (auto &f : facts)
    out += ".visible .entry " + f.name + "()\n";
  return out + mark + base64(packed) + "\n";
}

int Image::load(const void *bytes, bool (*accepts)(const std::string &, bool), std::string *why,
                Image **out) {
  const char *p = static_cast<const char *>(bytes);
  std::string packed;
  bool text = starts(p, banner);
  if (text) {
    const char *at = strstr(p, mark);
    if (at == nullptr || !unbase64(at + strlen(mark), &packed) || packed.size() < sizeof(Header)) {
      *why = "ptxas fatal: syntax error";
      return 218;
    }
    p = packed.data();
  }
  if (!starts(p, magic)) {
    *why = "device kernel image is invalid";
    return text ? 218 : 200;
  }
  Header h;
  memcpy(&h, p, sizeof h);
  if ((text && packed.size() != sizeof h + h.bytes) || h.bytes > 1u << 30 || h.facts > h.bytes ||
      checksum(p + sizeof h, h.bytes) != h.sum) {
    *why = "device kernel image is damaged";
    return text ? 218 : 200;
  }
  h.target[sizeof h.target - 1] = 0;
  if (!accepts(h.target, text)) {
    *why = std::string("no kernel image for this device: it was compiled for ") + h.target;
    return text ? 218 : 209;
  }
  std::istringstream words(std::string(p + sizeof h, h.facts));
  std::vector<ImageFacts> facts;
  for (ImageFacts f; words >> f.name >> f.fibers >> f.shared >> f.threads;)
    facts.push_back(f);
  auto *image = new Image;
  image->target = h.target;
  image->text = text;
  int code = image->open(std::string(p + sizeof h + h.facts, h.bytes - h.facts), facts, why);
  if (code != 0) {
    delete image;
    return code;
  }
  *out = image;
  return 0;
}

// from_file loads a library from a file in $TMPDIR, where /proc is not mounted.
static void *from_file(const std::string &elf) {
  const char *base = getenv("TMPDIR");
  std::string path =
      std::string(base != nullptr && *base != 0 ? base : "/tmp") + "/concord-sim-XXXXXX";
  int fd = mkstemp(&path[0]);
  if (fd < 0)
    return nullptr;
  bool whole = write(fd, elf.data(), elf.size()) == static_cast<ssize_t>(elf.size());
  void *handle = whole ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  close(fd);
  return handle;
}

int Image::open(const std::string &elf, const std::vector<ImageFacts> &facts, std::string *why) {
  int fd = memfd_create("concord-sim", MFD_CLOEXEC);
  if (fd < 0 || write(fd, elf.data(), elf.size()) != static_cast<ssize_t>(elf.size())) {
    *why = "no memory for the image";
    if (fd >= 0)
      close(fd);
    return 2;
  }
  // The loader identifies libraries by path and by inode number, which may be reused. So each load
  // uses a different path, also from those of another simulated library, whose counter is another.
  static std::atomic<unsigned> loads;
  std::string path = "/proc/self/fd";
  for (int bit = 12; bit < 48; bit++)
    path += reinterpret_cast<uintptr_t>(&loads) >> bit & 1 ? "/." : "//.";
  for (unsigned n = ++loads; n > 0; n /= 2)
    path += n % 2 ? "/." : "//.";
  path += "/" + std::to_string(fd);
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    *why = dlerror();
    handle = access("/proc/self/fd", F_OK) != 0 ? from_file(elf) : nullptr;
  }
  close(fd);
  if (handle == nullptr)
    return 200;
  table = static_cast<const ImageTable *>(dlsym(handle, "__sim_table"));
  if (table == nullptr || table->abi != IMAGE_ABI || table->count != facts.size()) {
    *why = "device kernel image is invalid";
    return 200;
  }
  for (uint32_t i = 0; i < table->count; i++) {
    ImageKernel k{facts[i], &table->entries[i], {}};
    for (uint32_t n = 0; n < k.entry->params; n++)
      k.sizes.push_back(k.entry->param[n].bytes);
    kernels[facts[i].name] = k;
  }
  return 0;
}

Image::~Image() {
  if (handle != nullptr)
    dlclose(handle);
}

const ImageKernel *Image::kernel(const std::string &name) const {
  auto it = kernels.find(name);
  return it == kernels.end() ? nullptr : &it->second;
}

void *Image::global(const std::string &name, size_t *bytes) {
  void *p = name.compare(0, 6, "__sim_") == 0 ? nullptr : dlsym(handle, name.c_str());
  Dl_info info;
  ElfW(Sym) *symbol = nullptr;
  if (p == nullptr || !dladdr1(p, &info, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT) ||
      symbol == nullptr || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT ||
      info.dli_fbase != [&] { // dlsym also looks into the C library
        Dl_info own;
        return dladdr(table, &own) ? own.dli_fbase : nullptr;
      }())
    return nullptr;
  *bytes = symbol->st_size;
  found[p] = symbol->st_size;
  return p;
}

int Image::trap() const { return __atomic_exchange_n(table->trap, 0, __ATOMIC_SEQ_CST); }

} // namespace sim
