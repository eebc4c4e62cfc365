// A CUDA driver without a GPU, for tests. It is stricter than the real one where
// that finds mistakes:
//
//   - Device memory cannot be read by the processor: its address is mapped without
//     access, and the fake itself uses a second mapping of the same memory.
//   - What needs a context and has none current on its thread fails.
//   - Streams are threads that take their time, so a missing wait shows.
//   - Kernels are those of files that a test names, compiled for the processor, and every
//     address they use is checked. Their names and parameters have to be those of the PTX
//     that is loaded.
//
// The environment, read when used: FAKECUDA_DEVICES (number, 2), FAKECUDA_SM
// (compute capability, 80), FAKECUDA_MEMORY (bytes per device, 4 GiB), FAKECUDA_INIT
// (what cuInit answers), FAKECUDA_DELAY (longest pause of a stream before a piece
// of work, in microseconds, 50), FAKECUDA_FAIL (name:n=code: the n-th call of that
// function from now on answers code).

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>

typedef unsigned long long u64;
typedef int result;

enum {
  OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
  INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NO_BINARY = 209, INVALID_PTX = 218, INVALID_HANDLE = 400,
  NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
  LAUNCH_FAILED = 719,
};

static const std::map<int, std::pair<const char *, const char *>> errors = {
  {INVALID_VALUE, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
  {OUT_OF_MEMORY, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
  {NOT_INITIALIZED, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
  {34, {"CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"}},
  {NO_DEVICE, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
  {INVALID_DEVICE, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
  {INVALID_IMAGE, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
  {INVALID_CONTEXT, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
  {NO_BINARY, {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"}},
  {INVALID_PTX, {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}},
  {INVALID_HANDLE, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
  {NOT_FOUND, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
  {NOT_READY, {"CUDA_ERROR_NOT_READY", "device not ready"}},
  {ILLEGAL_ADDRESS, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
  {LAUNCH_FAILED, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
  {803, {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"}},
  {999, {"CUDA_ERROR_UNKNOWN", "unknown error"}},
};

static long setting(const char *name, long otherwise) {
  const char *s = getenv(name);
  return s && *s ? strtol(s, NULL, 0) : otherwise;
}

// ---- failures on demand

// injected returns the code that FAKECUDA_FAIL wants of this call, else OK.
static result injected(const char *name) {
  static std::mutex mu;
  static std::string wanted;
  static long calls;
  std::lock_guard<std::mutex> lock(mu);
  const char *s = getenv("FAKECUDA_FAIL");
  if (!s) s = "";
  if (wanted != s) wanted = s, calls = 0;
  size_t n = strlen(name);
  if (strncmp(s, name, n) != 0 || s[n] != ':') return OK;
  char *end;
  long nth = strtol(s + n + 1, &end, 10);
  return ++calls == nth && *end == '=' ? atoi(end + 1) : OK;
}

#define API extern "C" __attribute__((visibility("default"))) result
#define MAY_FAIL \
  if (!initialized) return NOT_INITIALIZED; \
  if (result r = injected(__func__)) return r;
#define IN_CONTEXT \
  MAY_FAIL \
  if (!current) return INVALID_CONTEXT; \
  if (current->broken) return current->broken;

// ---- devices and contexts

struct Device {
  int ordinal;
  int retained;
  size_t used; // bytes of this process
  std::atomic<result> broken{OK}; // by a kernel that went astray: nothing works any more
};

static bool initialized;
static std::deque<Device> devices;
static thread_local Device *current; // a device has one context, its primary one

// ---- memory

struct Block {
  uintptr_t base; // what the caller has
  size_t size;
  char *alias;    // where the fake reaches it
  Device *device; // NULL: host memory
  int fd;         // of device memory, -1 for host memory
};

static std::shared_mutex memory;
static std::map<uintptr_t, Block> blocks;
static std::atomic<u64> generation; // changes when a block goes

// find returns the block that holds n bytes at addr; memory is locked.
static Block *find(uintptr_t addr, size_t n) {
  auto i = blocks.upper_bound(addr);
  if (i == blocks.begin()) return NULL;
  Block &b = (--i)->second;
  return addr - b.base < b.size && n <= b.size - (addr - b.base) ? &b : NULL;
}

static void add(const Block &b) {
  std::unique_lock<std::shared_mutex> lock(memory);
  blocks[b.base] = b;
}

// A stray kernel ends the launch it is in.
struct Astray {};

static thread_local Device *running; // whose kernel this thread plays
thread_local u64 fake_thread, fake_threads;

extern "C" __attribute__((visibility("hidden"))) void *fake_reach(u64 addr, u64 n) {
  static thread_local Block last;
  static thread_local u64 seen = ~0ull;
  if (addr % n) throw Astray();
  if (seen != generation || addr - last.base >= last.size || n > last.size - (addr - last.base)) {
    std::shared_lock<std::shared_mutex> lock(memory);
    seen = generation;
    Block *b = find(addr, n);
    if (!b) throw Astray();
    last = *b;
  }
  if (last.device && last.device != running) throw Astray();
  return last.alias + (addr - last.base);
}

// ---- streams and events

static void pause_a_little() {
  static thread_local std::minstd_rand random(std::random_device{}());
  long most = setting("FAKECUDA_DELAY", 50);
  if (most > 0 && random() % 4 == 0) usleep(random() % most);
}

struct Stream {
  Device *device;
  std::mutex mu;
  std::condition_variable changed;
  std::deque<std::function<result()>> queue;
  bool busy = false, closing = false;
  std::thread worker;

  Stream(Device *d) : device(d), worker([this] { work(); }) {}

  void put(std::function<result()> f) {
    std::lock_guard<std::mutex> lock(mu);
    queue.push_back(std::move(f));
    changed.notify_all();
  }

  void work() {
    std::unique_lock<std::mutex> lock(mu);
    for (;;) {
      changed.wait(lock, [&] { return !queue.empty() || closing; });
      if (queue.empty()) return;
      auto f = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      pause_a_little();
      if (result r = f()) device->broken = r;
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }

  void drain() {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return queue.empty() && !busy; });
  }
};

struct Event {
  std::mutex mu;
  std::condition_variable changed;
  u64 recorded = 0, reached = 0;

  void wait(u64 until) {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return reached >= until; });
  }
};

static std::mutex handles;
// They outlive the process: its end does not wait for streams.
static auto &streams = *new std::map<void *, std::shared_ptr<Stream>>;
static auto &events = *new std::map<void *, std::shared_ptr<Event>>;

static std::shared_ptr<Stream> stream_of(void *h) {
  std::lock_guard<std::mutex> lock(handles);
  auto i = streams.find(h);
  return i == streams.end() ? nullptr : i->second;
}

static std::shared_ptr<Event> event_of(void *h) {
  std::lock_guard<std::mutex> lock(handles);
  auto i = events.find(h);
  return i == events.end() ? nullptr : i->second;
}

// ---- what the fake NCCL asks of this library

#define HOOK extern "C" __attribute__((visibility("default")))

// fake_put puts f on a stream of the current device, whose other work fails if f does.
HOOK result fake_put(void *stream, result (*f)(void *), void *arg) {
  auto s = stream_of(stream);
  if (!s || s->device != current) return INVALID_HANDLE;
  s->put([=] { return f(arg); });
  return OK;
}

// fake_place returns where n bytes of the current device's memory can be used, or NULL.
HOOK char *fake_place(uintptr_t addr, size_t n) {
  std::shared_lock<std::shared_mutex> lock(memory);
  Block *b = find(addr, n);
  return b && current && b->device == current ? b->alias + (addr - b->base) : NULL;
}

// fake_current returns the current device, -1 if there is none.
HOOK int fake_current() { return current ? current->ordinal : -1; }

HOOK result fake_injected(const char *name) { return injected(name); }

// settle waits for all streams of a device, as freeing memory does.
static void settle(Device *d) {
  std::map<void *, std::shared_ptr<Stream>> all;
  {
    std::lock_guard<std::mutex> lock(handles);
    all = streams;
  }
  for (auto &s : all)
    if (s.second->device == d) s.second->drain();
}

// ---- the driver's functions

API cuGetErrorName(int code, const char **name) {
  auto i = errors.find(code);
  if (i == errors.end()) return INVALID_VALUE;
  *name = i->second.first;
  return OK;
}

API cuGetErrorString(int code, const char **text) {
  auto i = errors.find(code);
  if (i == errors.end()) return INVALID_VALUE;
  *text = i->second.second;
  return OK;
}

API cuInit(unsigned flags) {
  if (result r = setting("FAKECUDA_INIT", 0)) return r;
  if (flags) return INVALID_VALUE;
  if (!initialized) {
    long n = setting("FAKECUDA_DEVICES", 2);
    for (int i = 0; i < n; i++) devices.emplace_back().ordinal = i;
    if (!n) return NO_DEVICE;
  }
  initialized = true;
  return OK;
}

API cuDeviceGetCount(int *count) {
  MAY_FAIL
  *count = devices.size();
  return OK;
}

API cuDeviceGet(int *device, int ordinal) {
  MAY_FAIL
  if (ordinal < 0 || ordinal >= (int)devices.size()) return INVALID_DEVICE;
  *device = ordinal;
  return OK;
}

API cuDeviceGetName(char *name, int size, int) {
  MAY_FAIL
  snprintf(name, size, "fake GPU");
  return OK;
}

API cuDeviceGetAttribute(int *value, int attribute, int) {
  MAY_FAIL
  int sm = setting("FAKECUDA_SM", 80);
  switch (attribute) {
  case 16: *value = 4; return OK;
  case 75: *value = sm / 10; return OK;
  case 76: *value = sm % 10; return OK;
  }
  return INVALID_VALUE;
}

API cuDeviceGetPCIBusId(char *bus, int size, int device) {
  MAY_FAIL
  snprintf(bus, size, "0000:%02X:00.0", device + 1);
  return OK;
}

static size_t capacity() { return setting("FAKECUDA_MEMORY", 4l << 30); }

API cuDeviceTotalMem_v2(size_t *bytes, int) {
  MAY_FAIL
  *bytes = capacity();
  return OK;
}

API cuDevicePrimaryCtxRetain(void **ctx, int device) {
  MAY_FAIL
  devices[device].retained++;
  *ctx = &devices[device];
  return OK;
}

API cuCtxGetCurrent(void **ctx) {
  MAY_FAIL
  *ctx = current;
  return OK;
}

API cuCtxSetCurrent(void *ctx) {
  MAY_FAIL
  current = (Device *)ctx;
  return OK;
}

// map_device makes device memory of a descriptor.
static result map_device(int fd, size_t size, Device *device, Block *b) {
  size_t whole = (size + 4095) & ~(size_t)4095;
  void *base = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void *alias = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED || alias == MAP_FAILED) return OUT_OF_MEMORY;
  *b = Block{(uintptr_t)base, size, (char *)alias, device, fd};
  return OK;
}

static void unmap_device(const Block &b) {
  size_t whole = (b.size + 4095) & ~(size_t)4095;
  munmap((void *)b.base, whole);
  munmap(b.alias, whole);
  close(b.fd);
}

API cuMemAlloc_v2(uintptr_t *addr, size_t n) {
  IN_CONTEXT
  if (!n) return INVALID_VALUE;
  {
    std::unique_lock<std::shared_mutex> lock(memory);
    if (n > capacity() - current->used) return OUT_OF_MEMORY;
    current->used += n;
  }
  int fd = memfd_create("fakecuda", MFD_CLOEXEC);
  Block b;
  if (fd < 0 || ftruncate(fd, (n + 4095) & ~(size_t)4095) || map_device(fd, n, current, &b)) return OUT_OF_MEMORY;
  memset(b.alias, 0xa5, n < 4096 ? n : 4096); // what is new is not zeroed
  add(b);
  *addr = b.base;
  return OK;
}

API cuMemFree_v2(uintptr_t addr) {
  IN_CONTEXT
  settle(current);
  std::unique_lock<std::shared_mutex> lock(memory);
  auto i = blocks.find(addr);
  if (i == blocks.end() || i->second.fd < 0) return INVALID_VALUE;
  generation++;
  i->second.device->used -= i->second.size;
  unmap_device(i->second);
  blocks.erase(i);
  return OK;
}

API cuMemAllocHost_v2(void **p, size_t n) {
  IN_CONTEXT
  *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*p == MAP_FAILED) return OUT_OF_MEMORY;
  add(Block{(uintptr_t)*p, n, (char *)*p, NULL, -1});
  return OK;
}

API cuMemFreeHost(void *p) {
  IN_CONTEXT
  settle(current);
  std::unique_lock<std::shared_mutex> lock(memory);
  auto i = blocks.find((uintptr_t)p);
  if (i == blocks.end() || i->second.device) return INVALID_VALUE;
  generation++;
  munmap(p, i->second.size);
  blocks.erase(i);
  return OK;
}

API cuMemGetInfo_v2(size_t *available, size_t *total) {
  IN_CONTEXT
  std::shared_lock<std::shared_mutex> lock(memory);
  *total = capacity();
  *available = *total - current->used;
  return OK;
}

API cuPointerGetAttributes(unsigned n, int *attributes, void **values, uintptr_t addr) {
  MAY_FAIL
  std::shared_lock<std::shared_mutex> lock(memory);
  Block *b = find(addr, 1);
  for (unsigned i = 0; i < n; i++) switch (attributes[i]) {
    case 2: *(int *)values[i] = !b ? 0 : b->device ? 2 : 1; break;
    case 8: *(int *)values[i] = 0; break;
    case 9: *(int *)values[i] = b && b->device ? b->device->ordinal : 0; break;
    default: return INVALID_VALUE;
    }
  return OK;
}

API cuStreamCreate(void **stream, unsigned) {
  IN_CONTEXT
  auto s = std::make_shared<Stream>(current);
  std::lock_guard<std::mutex> lock(handles);
  streams[s.get()] = s;
  *stream = s.get();
  return OK;
}

API cuStreamDestroy_v2(void *stream) {
  IN_CONTEXT
  auto s = stream_of(stream);
  if (!s) return INVALID_HANDLE;
  {
    std::lock_guard<std::mutex> lock(handles);
    streams.erase(stream);
  }
  {
    std::lock_guard<std::mutex> lock(s->mu);
    s->closing = true;
    s->changed.notify_all();
  }
  s->worker.join();
  return OK;
}

API cuStreamSynchronize(void *stream) {
  IN_CONTEXT
  auto s = stream_of(stream);
  if (!s) return INVALID_HANDLE;
  s->drain();
  return s->device->broken;
}

API cuStreamWaitEvent(void *stream, void *event, unsigned) {
  IN_CONTEXT
  auto s = stream_of(stream);
  auto e = event_of(event);
  if (!s || !e) return INVALID_HANDLE;
  std::lock_guard<std::mutex> lock(e->mu);
  s->put([e, until = e->recorded] { e->wait(until); return OK; });
  return OK;
}

API cuEventCreate(void **event, unsigned) {
  IN_CONTEXT
  auto e = std::make_shared<Event>();
  std::lock_guard<std::mutex> lock(handles);
  events[e.get()] = e;
  *event = e.get();
  return OK;
}

API cuEventDestroy_v2(void *event) {
  IN_CONTEXT
  std::lock_guard<std::mutex> lock(handles);
  return events.erase(event) ? OK : INVALID_HANDLE;
}

API cuEventRecord(void *event, void *stream) {
  IN_CONTEXT
  auto s = stream_of(stream);
  auto e = event_of(event);
  if (!s || !e || s->device != current) return INVALID_HANDLE;
  std::lock_guard<std::mutex> lock(e->mu);
  s->put([e, until = ++e->recorded] {
    std::lock_guard<std::mutex> lock(e->mu);
    if (e->reached < until) e->reached = until;
    e->changed.notify_all();
    return OK;
  });
  return OK;
}

API cuEventQuery(void *event) {
  IN_CONTEXT
  auto e = event_of(event);
  if (!e) return INVALID_HANDLE;
  std::lock_guard<std::mutex> lock(e->mu);
  if (e->reached < e->recorded) return NOT_READY;
  return current->broken;
}

API cuEventSynchronize(void *event) {
  IN_CONTEXT
  auto e = event_of(event);
  if (!e) return INVALID_HANDLE;
  u64 until;
  {
    std::lock_guard<std::mutex> lock(e->mu);
    until = e->recorded;
  }
  e->wait(until);
  return current->broken;
}

// place finds n bytes for a copy. What the fake does not know is pageable memory.
static result place(uintptr_t addr, size_t n, char **p, bool *pageable) {
  std::shared_lock<std::shared_mutex> lock(memory);
  Block *b = find(addr, n);
  *pageable = !b;
  *p = b ? b->alias + (addr - b->base) : (char *)addr;
  return !b && find(addr, 1) ? INVALID_VALUE : OK; // it would leave its allocation
}

// As with the real driver, pageable memory is read before the call returns, and
// written before it returns.
API cuMemcpyAsync(uintptr_t dst, uintptr_t src, size_t n, void *stream) {
  IN_CONTEXT
  auto s = stream_of(stream);
  if (!s || s->device != current) return INVALID_HANDLE;
  char *to, *from;
  bool writeNow, readNow;
  if (place(dst, n, &to, &writeNow) || place(src, n, &from, &readNow)) return INVALID_VALUE;
  if (readNow) {
    auto copy = std::make_shared<std::string>(from, n);
    s->put([=] { memcpy(to, copy->data(), n); return OK; });
  } else {
    s->put([=] { memmove(to, from, n); return OK; });
  }
  if (writeNow) s->drain();
  return OK;
}

API cuMemsetD8Async(uintptr_t dst, unsigned char value, size_t n, void *stream) {
  IN_CONTEXT
  auto s = stream_of(stream);
  char *to;
  bool pageable;
  if (!s || s->device != current) return INVALID_HANDLE;
  if (place(dst, n, &to, &pageable) || pageable) return INVALID_VALUE;
  s->put([=] { memset(to, value, n); return OK; });
  return OK;
}

// ---- kernels

struct Kernel {
  void (*run)(const void *);
  size_t size; // of its parameter
};

struct Module {
  Device *device;
  std::string text;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

API cuModuleLoadDataEx(void **module, const void *text, unsigned n, int *options, void **values) {
  IN_CONTEXT
  const char *target = strstr((const char *)text, "\n.target sm_");
  result r = !strstr((const char *)text, ".version ") ? INVALID_IMAGE
    : !target || !strstr((const char *)text, ".entry ") ? INVALID_PTX
    : atoi(target + 12) > setting("FAKECUDA_SM", 80) ? NO_BINARY : OK;
  if (r) {
    for (unsigned i = 0; i + 1 < n; i++)
      if (options[i] == 5) snprintf((char *)values[i], (size_t)values[i + 1], "the fake's compiler does not like it");
    return r;
  }
  *module = new Module{current, (const char *)text, {}};
  return OK;
}

API cuModuleUnload(void *module) {
  IN_CONTEXT
  delete (Module *)module;
  return OK;
}

// self is this library, for the kernels compiled into it.
static void *self() {
  Dl_info info;
  dladdr((void *)&self, &info);
  return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

API cuModuleGetFunction(void **kernel, void *module, const char *name) {
  IN_CONTEXT
  static void *library = self();
  Module *m = (Module *)module;
  std::string n = name;
  size_t at = m->text.find(".entry " + n + "(");
  if (at == std::string::npos) return NOT_FOUND;
  auto k = std::make_unique<Kernel>();
  k->run = (void (*)(const void *))dlsym(library, name);
  auto *size = (const unsigned *)dlsym(library, (n + "_size").c_str());
  std::string param = n + "_param_0[";
  size_t bracket = m->text.find(param, at);
  if (!k->run || !size || bracket == std::string::npos || m->text.find("_param_1", at) < m->text.find("{", at)) return NOT_FOUND;
  k->size = atol(m->text.c_str() + bracket + param.size());
  if (k->size != *size) return INVALID_PTX;
  *kernel = k.get();
  m->kernels[n] = std::move(k);
  return OK;
}

API cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void *stream,
                   void **params, void **) {
  IN_CONTEXT
  auto s = stream_of(stream);
  if (!s || s->device != current) return INVALID_HANDLE;
  if (!gx || gy != 1 || gz != 1 || !bx || by != 1 || bz != 1 || bx > 1024) return INVALID_VALUE;
  auto *k = (Kernel *)kernel;
  std::string args((char *)params[0], k->size);
  u64 threads = (u64)gx * bx < 5 ? (u64)gx * bx : 5; // enough for every way through the loops
  s->put([=, device = current]() -> result {
    alignas(16) char aligned[4096];
    memcpy(aligned, args.data(), args.size());
    running = device;
    fake_threads = threads;
    try {
      for (fake_thread = 0; fake_thread < threads; fake_thread++) k->run(aligned);
    } catch (Astray) {
      return ILLEGAL_ADDRESS;
    }
    return OK;
  });
  return OK;
}

// ---- cuBLAS, as far as cudaops uses it: products on a stream, by columns

struct Blas {
  Device *device;
  void *stream = NULL;
};

static const char *const statuses[][2] = {
  {"CUBLAS_STATUS_SUCCESS", "success"}, {"CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"}, {},
  {"CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"}, {}, {}, {}, {"CUBLAS_STATUS_INVALID_VALUE", "an invalid value was used as an argument"},
};
enum { BLAS_NOT_INITIALIZED = 1, BLAS_INVALID_VALUE = 7 };

extern "C" __attribute__((visibility("default"))) const char *cublasGetStatusName(int status) { return statuses[status][0]; }
extern "C" __attribute__((visibility("default"))) const char *cublasGetStatusString(int status) { return statuses[status][1]; }

API cublasCreate_v2(void **blas) {
  if (result r = injected(__func__)) return r;
  if (!current) return BLAS_NOT_INITIALIZED;
  *blas = new Blas{current};
  return OK;
}

API cublasDestroy_v2(void *blas) {
  delete (Blas *)blas;
  return OK;
}

API cublasSetStream_v2(void *blas, void *stream) {
  auto s = stream_of(stream);
  if (!s || s->device != ((Blas *)blas)->device) return BLAS_INVALID_VALUE;
  ((Blas *)blas)->stream = stream;
  return OK;
}

// columns returns where the fake reaches a matrix, NULL if it is not all in memory of
// the device.
static float *columns(Device *device, uintptr_t addr, u64 rows, u64 cols, u64 stride) {
  static float none;
  if (!rows || !cols) return &none;
  std::shared_lock<std::shared_mutex> lock(memory);
  Block *b = find(addr, 4 * ((cols - 1) * stride + rows));
  return b && b->device == device ? (float *)(b->alias + (addr - b->base)) : NULL;
}

API cublasSgemm_v2(void *blas, int transposedA, int transposedB, int m, int n, int k, const float *alpha, uintptr_t a, int strideA,
                   uintptr_t b, int strideB, const float *beta, uintptr_t c, int strideC) {
  if (result r = injected(__func__)) return r;
  auto *h = (Blas *)blas;
  auto s = stream_of(h->stream);
  if (current != h->device || !s) return BLAS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || k < 0 || strideA < (transposedA ? k : m) || strideB < (transposedB ? n : k) || strideC < m || strideC < 1)
    return BLAS_INVALID_VALUE;
  s->put([=, device = current, alpha = *alpha, beta = *beta]() -> result {
    float *x = columns(device, a, transposedA ? k : m, transposedA ? m : k, strideA);
    float *y = columns(device, b, transposedB ? n : k, transposedB ? k : n, strideB);
    float *z = columns(device, c, m, n, strideC);
    if (!x || !y || !z) return ILLEGAL_ADDRESS;
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        float sum = 0;
        for (int l = 0; l < k; l++)
          sum += x[transposedA ? (u64)i * strideA + l : (u64)l * strideA + i] * y[transposedB ? (u64)l * strideB + j : (u64)j * strideB + l];
        float &at = z[(u64)j * strideC + i];
        at = alpha * sum + (beta ? beta * at : 0);
      }
    return OK;
  });
  return OK;
}
