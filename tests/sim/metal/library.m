// library.m: programs, pipelines, archives.

#include "sim.h"

NSString *const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";

// A program is a compiled text. As in the real system, some unused programs are kept, so that the
// same text need not be compiled again.
struct program {
  char *key; // options and text
  simmetal_library *compiled;
  int refs;
  struct program *next;
};

enum { KEPT = 32 };

static pthread_mutex_t programs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct program *programs; // most recently used first

static struct program *program_find(const char *key) {
  for (struct program **p = &programs; *p != NULL; p = &(*p)->next)
    if (strcmp((*p)->key, key) == 0) {
      struct program *found = *p;
      *p = found->next;
      found->next = programs;
      programs = found;
      found->refs++;
      return found;
    }
  return NULL;
}

static void program_release(struct program *gone) {
  pthread_mutex_lock(&programs_lock);
  gone->refs--;
  int unused = 0;
  for (struct program **p = &programs; *p != NULL;) {
    struct program *q = *p;
    if (q->refs == 0 && ++unused > KEPT) {
      *p = q->next;
      simmetal_free(q->compiled);
      free(q->key);
      free(q);
    } else {
      p = &q->next;
    }
  }
  pthread_mutex_unlock(&programs_lock);
}

// program_get returns the program of a text, which it compiles if necessary. The caller frees *log.
static struct program *program_get(const char *key, const char *text, const char *const *macros,
                                   int version, int fast, char **log) {
  enum { LOG = 1 << 16 };
  pthread_mutex_lock(&programs_lock);
  struct program *p = program_find(key);
  pthread_mutex_unlock(&programs_lock);
  *log = calloc(1, LOG);
  if (p != NULL)
    return p;
  simmetal_library *compiled = simmetal_compile_with(text, macros, version, fast, *log, LOG);
  if (compiled == NULL)
    return NULL;
  p = calloc(1, sizeof *p);
  p->key = strdup(key);
  p->compiled = compiled;
  p->refs = 1;
  pthread_mutex_lock(&programs_lock);
  p->next = programs;
  programs = p;
  pthread_mutex_unlock(&programs_lock);
  return p;
}

// macros_of returns macros in the form of the compiler's options: "NAME=VALUE".
static NSArray *macros_of(NSDictionary *macros) {
  NSMutableArray *list = [NSMutableArray array];
  for (NSString *name in [[macros allKeys] sortedArrayUsingSelector:@selector(compare:)])
    [list addObject:[NSString stringWithFormat:@"%@=%@", name, [macros objectForKey:name]]];
  return list;
}

id<MTLLibrary> sim_library(NSString *source, MTLCompileOptions *options, NSError **error) {
  CHECK(source != nil, @"newLibraryWithSource: nil");
  int code = simmetal_fault(CALL_COMPILE);
  if (code != 0) {
    if (error != NULL)
      *error = sim_error(MTLLibraryErrorDomain,
                         code == SIMMETAL_LOST ? MTLLibraryErrorInternal : MTLLibraryErrorCompileFailure,
                         @"the compiler failed, as it was told to");
    return nil;
  }
  NSUInteger v = options != nil ? options.languageVersion : MTLLanguageVersion3_2;
  int version = (int)(v >> 16) * 100 + (int)(v & 0xffff) * 10;
  int fast = options == nil || options.fastMathEnabled;
  NSArray *list = macros_of(options.preprocessorMacros);
  const char *macros[[list count] + 1];
  for (NSUInteger i = 0; i < [list count]; i++)
    macros[i] = [[list objectAtIndex:i] UTF8String];
  macros[[list count]] = NULL;
  NSString *key = [NSString stringWithFormat:@"%d %d %@\n%@", version, fast,
                                             [list componentsJoinedByString:@" "], source];
  char *log;
  struct program *p =
      program_get([key UTF8String], [source UTF8String], macros, version, fast, &log);
  NSString *words = [NSString stringWithUTF8String:log];
  free(log);
  if (error != NULL)
    *error = nil;
  if (error != NULL && [words length] > 0)
    *error = sim_error(MTLLibraryErrorDomain,
                       p != NULL ? MTLLibraryErrorCompileWarning : MTLLibraryErrorCompileFailure,
                       words);
  return p != NULL ? [[SimLibrary alloc] initWithProgram:p] : nil;
}

@implementation SimLibrary
- (id)initWithProgram:(struct program *)p {
  self = [super init];
  program = p;
  simmetal_count(GAUGE_MODULES, 1);
  return self;
}
- (void)dealloc {
  program_release(program);
  simmetal_count(GAUGE_MODULES, -1);
  [super dealloc];
}
- (NSArray<NSString *> *)functionNames {
  NSMutableArray *names = [NSMutableArray array];
  for (uint32_t i = 0; i < program->compiled->kernel_count; i++)
    [names addObject:[NSString stringWithUTF8String:program->compiled->kernels[i].name]];
  return names;
}
- (id<MTLFunction>)newFunctionWithName:(NSString *)name {
  if (simmetal_fault(CALL_FIND) != 0)
    return nil;
  const simmetal_kernel *k = simmetal_find(program->compiled, [name UTF8String]);
  return k != NULL ? [[SimFunction alloc] initIn:self kernel:k] : nil;
}
@end

@implementation SimFunction
- (id)initIn:(SimLibrary *)l kernel:(const simmetal_kernel *)k {
  self = [super init];
  library = [l retain];
  kernel = k;
  return self;
}
- (void)dealloc {
  [library release];
  [super dealloc];
}
@end

@implementation SimPipeline
- (id)initWithFunction:(SimFunction *)f {
  self = [super init];
  function = [f retain];
  return self;
}
- (void)dealloc {
  [function release];
  [super dealloc];
}
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return function->kernel->max_threads;
}
- (NSUInteger)threadExecutionWidth {
  return SIMMETAL_WIDTH;
}
- (NSUInteger)staticThreadgroupMemoryLength {
  return function->kernel->static_bytes;
}
@end

id<MTLComputePipelineState> sim_pipeline(MTLComputePipelineDescriptor *d, MTLPipelineOption options,
                                         MTLComputePipelineReflection **reflection,
                                         NSError **error) {
  SimFunction *f = (SimFunction *)d.computeFunction;
  CHECK(f != nil, @"a pipeline without a function");
  NSString *why = nil;
  if (simmetal_fault(CALL_LOAD) != 0)
    why = @"the pipeline failed, as it was told to";
  BOOL found = NO;
  for (SimArchive *a in d.binaryArchives)
    found = found || [a has:f];
  if (why == nil && !found && (options & MTLPipelineOptionFailOnBinaryArchiveMiss) != 0)
    why = @"the function is in none of the archives";
  if (why == nil && found)
    simmetal_count(GAUGE_ARCHIVED, 1);
  if (why != nil) {
    if (error != NULL)
      *error = sim_error(MTLLibraryErrorDomain, MTLLibraryErrorInternal, why);
    return nil;
  }
  if (reflection != NULL)
    *reflection = sim_reflection(f, options);
  return [[SimPipeline alloc] initWithFunction:f];
}

// An archive of this simulation is a list of compiled functions: a line with its kind, then a key
// for each.
static NSString *const archive_kind = @"Concord simulated Metal archive 1";

static NSString *archive_key(SimFunction *f) {
  uint64_t hash = 14695981039346656037u; // FNV-1a
  for (const char *c = f->library->program->key; *c != 0; c++)
    hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  return [NSString stringWithFormat:@"%016llx %s", (unsigned long long)hash, f->kernel->name];
}

id<MTLBinaryArchive> sim_archive(MTLBinaryArchiveDescriptor *d, NSError **error) {
  NSMutableSet *entries = [NSMutableSet set];
  NSString *why = simmetal_fault(CALL_ARCHIVE) != 0 ? @"the archive failed, as it was told to" : nil;
  if (why == nil && d.url != nil) {
    NSString *text = [NSString stringWithContentsOfFile:[d.url path]
                                               encoding:NSUTF8StringEncoding
                                                  error:NULL];
    NSArray *lines = [text componentsSeparatedByString:@"\n"];
    if (text == nil || ![[lines objectAtIndex:0] isEqualToString:archive_kind])
      why = @"the file is no archive";
    else
      [entries addObjectsFromArray:[lines subarrayWithRange:NSMakeRange(1, [lines count] - 1)]];
  }
  if (why != nil) {
    if (error != NULL)
      *error = sim_error(@"MTLBinaryArchiveDomain", 1, why);
    return nil;
  }
  return [[SimArchive alloc] initWithEntries:entries];
}

@implementation SimArchive
- (id)initWithEntries:(NSSet *)e {
  self = [super init];
  entries = [e mutableCopy];
  return self;
}
- (void)dealloc {
  [entries release];
  [super dealloc];
}
- (BOOL)has:(SimFunction *)f {
  @synchronized(self) {
    return [entries containsObject:archive_key(f)];
  }
}
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)d
                                            error:(NSError **)error {
  if (simmetal_fault(CALL_ARCHIVE) != 0) {
    if (error != NULL)
      *error = sim_error(@"MTLBinaryArchiveDomain", 3, @"the archive failed, as it was told to");
    return NO;
  }
  @synchronized(self) {
    [entries addObject:archive_key((SimFunction *)d.computeFunction)];
  }
  return YES;
}
- (BOOL)serializeToURL:(NSURL *)url error:(NSError **)error {
  NSString *text;
  @synchronized(self) {
    NSArray *keys = [[entries allObjects] sortedArrayUsingSelector:@selector(compare:)];
    text = [archive_kind stringByAppendingFormat:@"\n%@", [keys componentsJoinedByString:@"\n"]];
  }
  if (simmetal_fault(CALL_ARCHIVE) == 0 && [text writeToFile:[url path]
                                                  atomically:YES
                                                    encoding:NSUTF8StringEncoding
                                                       error:NULL])
    return YES;
  if (error != NULL)
    *error = sim_error(@"MTLBinaryArchiveDomain", 2, @"the archive was not written");
  return NO;
}
@end
