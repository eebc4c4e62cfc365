// What every file of kernels begins with. `make ptx` turns such a file into PTX,
// with clang alone: nothing of CUDA's is included. The fake driver of the tests
// compiles the same file for the processor; what differs there stands under
// #ifndef __CUDA__.
//
// A kernel has one parameter, a struct, and no threads that talk to each other:
// each takes its part of the work in steps of threads().

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

static_assert(sizeof(u64) == 8, "");

#ifdef __CUDA__
#define KERNEL(name, Args) extern "C" __attribute__((global)) void name(Args a)
#define DEVICE static __attribute__((device, always_inline)) inline
#define METHOD __attribute__((device, always_inline)) inline
#define MEMBER METHOD static
#define GLOBAL __attribute__((address_space(1)))
template <class T> DEVICE GLOBAL T *reach(u64 addr) { return (GLOBAL T *)addr; }
DEVICE u64 thread() { return (u64)__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u64 threads() { return (u64)__nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x(); }
#else
// A kernel is called through a pointer to its parameter, whose size is checked
// against the PTX.
#define KERNEL(name, Args) \
  static void name##_body(Args a); \
  extern "C" const unsigned name##_size = sizeof(Args); \
  extern "C" void name(const void *args) { name##_body(*(const Args *)args); } \
  static void name##_body(Args a)
#define DEVICE static inline
#define METHOD inline
#define MEMBER static inline
// The fake driver's: the processor's address of device memory, checked.
extern "C" void *fake_reach(u64 addr, u64 bytes);
extern thread_local u64 fake_thread, fake_threads;
template <class T> DEVICE T *reach(u64 addr) { return (T *)fake_reach(addr, sizeof(T)); }
DEVICE u64 thread() { return fake_thread; }
DEVICE u64 threads() { return fake_threads; }
#endif
