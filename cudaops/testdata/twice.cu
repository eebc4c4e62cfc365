// The kernel of this package's tests.

#include "kernel.h"

struct Twice {
  u64 data, n; // n numbers
};

// twice doubles numbers.
KERNEL(twice, Twice) {
  for (u64 i = thread(); i < a.n; i += threads()) *reach<float>(a.data + 4 * i) *= 2;
}
