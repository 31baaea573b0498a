// compile.m builds programs, and converts them to and from bytes.
//
// Metal cannot write a compiled library, but it can write the machine code of its kernels: a
// binary archive. So the bytes of a program are its source with the options of its compilation, and
// the archive with the machine code of every kernel. Loading calls the front end of
// Metal's compiler for the source again, whose results the system caches, and takes the kernels'
// code from the archive. If the archive does not fit the system or GPU, Metal compiles the kernels
// from the library.

#include "state.h"

// -- bytes --

static const char program_magic[8] = "CMETAL01";

enum { PROGRAM_HEADER = 8 + 4 + 4 + 8 + 8 };

// pack writes a program; blob_free frees it.
static int32_t pack(const struct program *p, cs_blob *out, cs_error *err) {
  uint64_t bytes = PROGRAM_HEADER + p->source_bytes + p->archive_bytes;
  unsigned char *at = malloc(bytes);
  if (at == NULL)
    return no_host_memory(err);
  out->data = at;
  out->bytes = bytes;
  memcpy(at, program_magic, 8);
  memcpy(at + 8, &p->language, 4); // little-endian, as every host of Metal is
  memcpy(at + 12, &p->fast, 4);
  memcpy(at + 16, &p->source_bytes, 8);
  memcpy(at + 24, &p->archive_bytes, 8);
  memcpy(at + PROGRAM_HEADER, p->source, p->source_bytes);
  if (p->archive_bytes > 0)
    memcpy(at + PROGRAM_HEADER + p->source_bytes, p->archive, p->archive_bytes);
  return CS_OK;
}

// unpack reads a program. Its pointers point into code.
static int32_t unpack(const unsigned char *code, uint64_t bytes, struct program *p, cs_error *err) {
  memset(p, 0, sizeof *p);
  if (bytes < PROGRAM_HEADER || memcmp(code, program_magic, 8) != 0)
    return tell(err, CS_FORMAT, 0, "%llu bytes that are not a program for Metal",
                (unsigned long long)bytes);
  memcpy(&p->language, code + 8, 4);
  memcpy(&p->fast, code + 12, 4);
  memcpy(&p->source_bytes, code + 16, 8);
  memcpy(&p->archive_bytes, code + 24, 8);
  uint64_t rest = bytes - PROGRAM_HEADER;
  if (p->source_bytes > rest || p->archive_bytes != rest - p->source_bytes)
    return tell(err, CS_FORMAT, 0, "the program is damaged or cut short");
  p->source = (const char *)code + PROGRAM_HEADER;
  p->archive = code + PROGRAM_HEADER + p->source_bytes;
  return CS_OK;
}

// -- the compiler --

static MTLCompileOptions *compile_options(const struct program *p) {
  MTLCompileOptions *options = [[MTLCompileOptions alloc] init];
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
  [options setFastMathEnabled:p->fast != 0]; // its successor exists only since macOS 15
#pragma clang diagnostic pop
  if (p->fast != 0) // otherwise pragmas in the rendered source would switch it off
    [options setPreprocessorMacros:[NSDictionary dictionaryWithObject:@"1" forKey:@"CC_FAST_MATH"]];
  if (p->language != 0)
    [options setLanguageVersion:(MTLLanguageVersion)p->language];
  return options;
}

// library_of compiles the source. log gets the compiler's log, also after success.
static int32_t library_of(id<MTLDevice> device, const struct program *p, id<MTLLibrary> *out,
                          char *log, uint64_t log_bytes, cs_error *err) {
  NSString *source = [[NSString alloc] initWithBytes:p->source
                                              length:(NSUInteger)p->source_bytes
                                            encoding:NSUTF8StringEncoding];
  if (source == nil)
    return tell(err, CS_COMPILE, 0, "the source is not UTF-8");
  MTLCompileOptions *options = compile_options(p);
  NSError *why = nil;
  id<MTLLibrary> library = [device newLibraryWithSource:source options:options error:&why];
  [options release];
  [source release];
  if (why != nil && log_bytes > 0)
    snprintf(log, log_bytes, "%s", words([why localizedDescription]));
  if (library == nil)
    return failed(err, CS_COMPILE, "newLibraryWithSource", why);
  *out = library;
  return CS_OK;
}

// -- archives --

// sweep removes files of processes that ended without removing them.
static void sweep(void) {
  const char *where = [NSTemporaryDirectory() fileSystemRepresentation];
  DIR *directory = opendir(where);
  if (directory == NULL)
    return;
  for (struct dirent *e; (e = readdir(directory)) != NULL;) {
    long process = 0;
    if (sscanf(e->d_name, "concord-metal-%ld-", &process) == 1 && process > 0 &&
        kill((pid_t)process, 0) != 0 && errno == ESRCH)
      unlinkat(dirfd(directory), e->d_name, 0);
  }
  closedir(directory);
}

// temporary_file creates an empty file and returns its path, or NULL if it cannot. The name
// contains the number of the process. Before the first file of a process, it calls sweep.
static char *temporary_file(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, sweep);
  char name[64];
  snprintf(name, sizeof name, "concord-metal-%ld-XXXXXX", (long)getpid());
  NSString *template =
      [NSTemporaryDirectory() stringByAppendingPathComponent:[NSString stringWithUTF8String:name]];
  char *path = strdup([template fileSystemRepresentation]);
  int file = path != NULL ? mkstemp(path) : -1;
  if (file < 0) {
    free(path);
    return NULL;
  }
  close(file);
  return path;
}

static void drop_file(char *path) {
  if (path != NULL)
    unlink(path);
  free(path);
}

static NSURL *url_of(const char *path) {
  return [NSURL fileURLWithPath:[NSString stringWithUTF8String:path]];
}

// archive_at opens an archive: of a file, or an empty one if path is NULL.
static id<MTLBinaryArchive> archive_at(id<MTLDevice> device, const char *path) {
  MTLBinaryArchiveDescriptor *descriptor = [[MTLBinaryArchiveDescriptor alloc] init];
  if (path != NULL)
    [descriptor setUrl:url_of(path)];
  NSError *why = nil;
  id<MTLBinaryArchive> archive = [device newBinaryArchiveWithDescriptor:descriptor error:&why];
  [descriptor release];
  return archive;
}

// archive_library adds the code of every function of a library. It returns 0 if one does not
// compile.
static int archive_library(id<MTLBinaryArchive> archive, id<MTLLibrary> library) {
  for (NSString *name in [library functionNames]) {
    id<MTLFunction> function = [library newFunctionWithName:name];
    MTLComputePipelineDescriptor *descriptor = [[MTLComputePipelineDescriptor alloc] init];
    [descriptor setComputeFunction:function];
    NSError *why = nil;
    BOOL added = [archive addComputePipelineFunctionsWithDescriptor:descriptor error:&why];
    [descriptor release];
    [function release];
    if (!added)
      return 0;
  }
  return 1;
}

// make_archive returns the code of a library's kernels, or nil if that fails: a program works
// without it, too.
static NSData *make_archive(id<MTLDevice> device, id<MTLLibrary> library) {
  id<MTLBinaryArchive> archive = archive_at(device, NULL);
  char *path = archive != nil ? temporary_file() : NULL;
  NSData *data = nil;
  NSError *why = nil;
  @try {
    if (path != NULL && archive_library(archive, library) &&
        [archive serializeToURL:url_of(path) error:&why])
      data = [NSData dataWithContentsOfFile:[NSString stringWithUTF8String:path]];
  } @finally {
    drop_file(path);
    [archive release];
  }
  return data;
}

// open_archive opens the archive of a module's program. Apple does not document whether an archive
// is read completely when it is opened, so the file is kept as long as the module.
static int32_t open_archive(cs_device *d, const struct program *p, cs_module *m) {
  if (p->archive_bytes == 0)
    return CS_OK;
  m->path = temporary_file();
  if (m->path == NULL)
    return CS_OK;
  NSData *data = [NSData dataWithBytes:p->archive length:(NSUInteger)p->archive_bytes];
  if ([data writeToFile:[NSString stringWithUTF8String:m->path] atomically:NO])
    m->archive = archive_at(d->handle, m->path);
  if (m->archive == nil) {
    drop_file(m->path);
    m->path = NULL;
  }
  return CS_OK;
}

// -- the entries --

// list_targets lists the families of the devices of this machine, as Metal compiles for no others.
static int32_t list_targets(cs_lib *lib, char *text, uint64_t bytes, cs_error *err) {
  NSArray<id<MTLDevice>> *devices = nil;
  int32_t status = devices_of(lib, &devices, err);
  NSMutableString *list = [NSMutableString string];
  for (id<MTLDevice> device in devices) {
    char name[64];
    family(device, name, sizeof name);
    NSString *target = [NSString stringWithUTF8String:name];
    if ([list rangeOfString:target].location == NSNotFound)
      [list appendFormat:@"%@%@", [list length] > 0 ? @" " : @"", target];
  }
  if (status == CS_OK && bytes > 0)
    snprintf(text, bytes, "%s", words(list));
  return status;
}

static int32_t metal_targets(cs_lib *lib, char *text, uint64_t bytes, cs_error *err) {
  int32_t status = CS_OK;
  RUN(status, err, list_targets(lib, text, bytes, err));
  return status;
}

// device_for returns a device of a family, the first one if none is named.
static int32_t device_for(cs_lib *lib, const char *target, id<MTLDevice> *out, cs_error *err) {
  NSArray<id<MTLDevice>> *devices = nil;
  int32_t status = devices_of(lib, &devices, err);
  if (status != CS_OK)
    return status;
  for (id<MTLDevice> device in devices) {
    char name[64];
    family(device, name, sizeof name);
    if (target == NULL || strcmp(name, target) == 0) {
      *out = device;
      return CS_OK;
    }
  }
  return tell(err, CS_UNSUPPORTED, 0,
              "Metal compiles only for devices of this machine, and none is %s",
              target != NULL ? target : "a GPU");
}

// read_options reads -std=metalX.Y, -ffast-math and --target=FAMILY.
static int32_t read_options(const char *options, struct program *p, const char **target,
                            cs_error *err) {
  for (const char *o = options; *o != '\0'; o += strlen(o) + 1) {
    unsigned major = 0, minor = 0;
    if (strncmp(o, "--target=", 9) == 0)
      *target = o + 9;
    else if (strcmp(o, "-ffast-math") == 0)
      p->fast = 1;
    else if (sscanf(o, "-std=metal%u.%u", &major, &minor) == 2)
      p->language = major << 16 | minor;
    else
      return tell(err, CS_INVALID, 0, "no option %s", o);
  }
  return CS_OK;
}

// LOG_BYTES is the size of the compiler's log.
enum { LOG_BYTES = 1 << 16 };

static int32_t build(id<MTLDevice> device, struct program *p, cs_blob *out, cs_error *err) {
  id<MTLLibrary> library = nil;
  out->log = calloc(1, LOG_BYTES);
  if (out->log == NULL)
    return no_host_memory(err);
  out->log_bytes = LOG_BYTES;
  int32_t status = library_of(device, p, &library, out->log, LOG_BYTES, err);
  if (status != CS_OK)
    return status;
  NSData *archive = nil;
  @try {
    archive = make_archive(device, library);
  } @finally { // RUN handles exceptions
    [library release];
  }
  p->archive = [archive bytes];
  p->archive_bytes = [archive length];
  return pack(p, out, err);
}

static int32_t metal_compile(cs_lib *lib, const char *name, const char *source, const char *options,
                             cs_blob *out, cs_error *err) {
  (void)name;
  struct program p;
  memset(&p, 0, sizeof p);
  const char *target = NULL;
  int32_t status = read_options(options, &p, &target, err);
  id<MTLDevice> device = nil;
  if (status == CS_OK)
    RUN(status, err, device_for(lib, target, &device, err));
  if (status != CS_OK)
    return status;
  p.source = source;
  p.source_bytes = strlen(source);
  cs_blob made = {NULL, 0, NULL, 0};
  RUN(status, err, build(device, &p, &made, err));
  if (status == CS_OK || status == CS_COMPILE)
    *out = made;
  else
    free_blob(&made);
  return status;
}
