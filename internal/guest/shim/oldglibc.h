/* Has what is compiled with it (gcc -include) run where glibc is older than where it is built. From 2.34 on glibc has
 * libpthread's and libdl's functions in libc itself, by new versions of their symbols, and the linker takes the newest version
 * that there is. All have been there since 2.2.5, on arm64 since its first, 2.17, and mean the same: these are taken. What is
 * linked names libpthread and libdl, which newer glibcs have for those who do so. */
#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__linux__) && !defined(__ASSEMBLER__)
#ifdef __x86_64__
#define OLD(function, version) __asm__(".symver " #function "," #function "@GLIBC_" #version);
#else
#define OLD(function, version) __asm__(".symver " #function "," #function "@GLIBC_2.17");
#endif
OLD(dladdr, 2.2.5)
OLD(dlclose, 2.2.5)
OLD(dlerror, 2.2.5)
OLD(dlopen, 2.2.5)
OLD(dlsym, 2.2.5)
OLD(dlinfo, 2.3.3)
OLD(pthread_attr_getstack, 2.2.5)
OLD(pthread_attr_getstacksize, 2.2.5)
OLD(pthread_create, 2.2.5)
OLD(pthread_getattr_np, 2.2.5)
OLD(pthread_key_create, 2.2.5)
OLD(pthread_once, 2.2.5)
OLD(pthread_setspecific, 2.2.5)
OLD(pthread_sigmask, 2.2.5)
#undef OLD
#endif

/* C++ runs where libstdc++ is older, too, as torch's wheels do: it is one file that is compiled so. */
#ifdef __cplusplus
#include <new>
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT /* of glibc 2.30 */
__asm__(".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
extern "C" {
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0; /* of glibc 2.32 */
}
namespace std {
__attribute__((visibility("hidden"))) void __throw_bad_array_new_length() { throw bad_array_new_length(); }
} // namespace std
#ifdef __x86_64__ /* of g++ 11: a copy that nothing destroys adds a reference */
__asm__(".symver oldCopy,_ZNSt15__exception_ptr13exception_ptrC1ERKS0_@CXXABI_1.3.3");
__asm__(".symver oldDestroy,_ZNSt15__exception_ptr13exception_ptrD1Ev@CXXABI_1.3.3");
extern "C" {
void oldCopy(void* copy, const void* of);
void oldDestroy(void* pointer);
__attribute__((visibility("hidden"))) void addReference(void* pointer) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void addReference(void* pointer) { void* copy; oldCopy(&copy, pointer); }
__attribute__((visibility("hidden"))) void release(void* pointer) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
void release(void* pointer) { oldDestroy(pointer); }
}
#endif
#if _GLIBCXX_USE_CXX11_ABI /* stringbuf::str has another name in C++20 */
#include <string>
std::string oldStr(const void* buffer) __asm__("_ZNKSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv");
__attribute__((visibility("hidden"))) std::string newStr(const void* buffer) __asm__("_ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv");
std::string newStr(const void* buffer) { return oldStr(buffer); }
#endif
#endif
