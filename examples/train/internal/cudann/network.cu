// The kernels of the network, one for each step that is not a product of matrices,
// and a plain product for where cuBLAS is not there. cudaops/kernel.h says how such a
// file is compiled. Each parameter is mirrored by a struct in kernels.go.
//
// No two threads add to one number, so results are the same in every run.

#include "kernel.h"

DEVICE float load(u64 array, u64 i) { return *reach<float>(array + 4 * i); }
DEVICE void store(u64 array, u64 i, float x) { *reach<float>(array + 4 * i) = x; }
DEVICE u8 loadByte(u64 array, u64 i) { return *reach<u8>(array + i); }

// The powers and logarithms of the hardware, to some 22 bits: softmax asks no more.
DEVICE float power2(float x) {
#ifdef __CUDA__
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return __builtin_exp2f(x);
#endif
}

DEVICE float logarithm2(float x) {
#ifdef __CUDA__
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return __builtin_log2f(x);
#endif
}

DEVICE float root(float x) {
#ifdef __CUDA__
  return __nvvm_sqrt_rn_f(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// ---- embedding: a row of the table for each byte

struct Lookup {
  u64 table, bytes, x; // x: a row of width numbers for each byte
  u64 n, width;        // n bytes
};

KERNEL(lookup, Lookup) {
  for (u64 e = thread(); e < a.n * a.width; e += threads()) {
    u64 row = loadByte(a.bytes, e / a.width);
    store(a.x, e, load(a.table, row * a.width + e % a.width));
  }
}

// lookup_gradient adds the rows of x to those of the table. A thread has one number
// of the table and looks through all bytes, in their order.
KERNEL(lookup_gradient, Lookup) {
  for (u64 e = thread(); e < 256 * a.width; e += threads()) {
    u64 row = e / a.width, col = e % a.width;
    float sum = load(a.table, e);
    for (u64 i = 0; i < a.n; i++)
      if (loadByte(a.bytes, i) == row) sum += load(a.x, i * a.width + col);
    store(a.table, e, sum);
  }
}

// ---- what a layer does beside its product

struct Layer {
  u64 y, bias;
  u64 rows, cols;
  u64 relu;
};

// activate adds the bias to each row of y, and replaces what is negative by 0 if
// relu is set.
KERNEL(activate, Layer) {
  for (u64 e = thread(); e < a.rows * a.cols; e += threads()) {
    float y = load(a.y, e) + load(a.bias, e % a.cols);
    store(a.y, e, a.relu && y < 0 ? 0 : y);
  }
}

// bias_gradient adds the sum of the rows of y, which are gradients here, to bias.
KERNEL(bias_gradient, Layer) {
  for (u64 j = thread(); j < a.cols; j += threads()) {
    float sum = load(a.bias, j);
#pragma unroll 8
    for (u64 i = 0; i < a.rows; i++) sum += load(a.y, i * a.cols + j);
    store(a.bias, j, sum);
  }
}

struct Relu {
  u64 y, gradient;
  u64 n;
};

// relu_gradient clears the gradient where the layer gave 0.
KERNEL(relu_gradient, Relu) {
  for (u64 e = thread(); e < a.n; e += threads())
    if (load(a.y, e) == 0) store(a.gradient, e, 0);
}

// ---- loss

struct Loss {
  u64 logits, targets, losses; // losses: one for each row
  u64 rows, cols;
  float scale;
};

// cross_entropy makes -ln p(target) of each row, where p is the softmax of the row,
// and replaces logits by scale times the gradient of that. A thread has a row: they
// are short here, and few beside what products cost.
KERNEL(cross_entropy, Loss) {
  constexpr float perLn = 1.44269504f, ln2 = 0.693147181f;
  for (u64 i = thread(); i < a.rows; i += threads()) {
    u64 row = a.logits + 4 * i * a.cols, target = loadByte(a.targets, i);
    float top = load(row, 0);
    for (u64 j = 1; j < a.cols; j++) {
      float v = load(row, j);
      top = v > top ? v : top;
    }
    float logit = load(row, target) - top, norm = 0;
    for (u64 j = 0; j < a.cols; j++) {
      float e = power2((load(row, j) - top) * perLn);
      store(row, j, e);
      norm += e;
    }
    store(a.losses, i, logarithm2(norm) * ln2 - logit);
    float k = a.scale / norm;
    for (u64 j = 0; j < a.cols; j++) store(row, j, load(row, j) * k - (j == target ? a.scale : 0));
  }
}

// ---- optimiser: package nn's Adam, operation by operation

struct Adam {
  u64 data, gradient, mean, square;
  u64 n;
  float k, root, keepMean, addMean, keepSquare, addSquare, least;
};

KERNEL(adam, Adam) {
  for (u64 e = thread(); e < a.n; e += threads()) {
    float g = load(a.gradient, e);
    float m = a.keepMean * load(a.mean, e) + a.addMean * g;
    float s = a.keepSquare * load(a.square, e) + a.addSquare * g * g;
    store(a.mean, e, m);
    store(a.square, e, s);
    store(a.data, e, load(a.data, e) - a.k * m / (root(s) * a.root + a.least));
  }
}

// ---- product: z = x y + beta z

struct Product {
  u64 z, x, y;
  u64 m, n, k;              // z has m rows and n columns
  u64 xRow, xCol, yRow, yCol; // elements from one row, or column, to the next
  float beta;
};

// A thread has side rows and as many columns, far apart, so that its neighbours
// have the columns beside them: what it loads serves side products, and comes with
// what they load.
KERNEL(product, Product) {
  constexpr int side = 4;
  u64 rows = (a.m + side - 1) / side, cols = (a.n + side - 1) / side;
  for (u64 t = thread(); t < rows * cols; t += threads()) {
    u64 i = t / cols, j = t % cols;
    u64 x[side], y[side];
    float sum[side][side];
#pragma unroll
    for (int r = 0; r < side; r++) {
      u64 row = i + r * rows, col = j + r * cols; // past the end: the last one, for nothing
      x[r] = a.x + 4 * (row < a.m ? row : a.m - 1) * a.xRow;
      y[r] = a.y + 4 * (col < a.n ? col : a.n - 1) * a.yCol;
#pragma unroll
      for (int c = 0; c < side; c++) sum[r][c] = 0;
    }
    for (u64 l = 0; l < a.k; l++) {
      float u[side], v[side];
#pragma unroll
      for (int r = 0; r < side; r++) {
        u[r] = load(x[r], l * a.xCol);
        v[r] = load(y[r], l * a.yRow);
      }
#pragma unroll
      for (int r = 0; r < side; r++)
#pragma unroll
        for (int c = 0; c < side; c++) sum[r][c] += u[r] * v[c];
    }
#pragma unroll
    for (int r = 0; r < side; r++)
#pragma unroll
      for (int c = 0; c < side; c++) {
        u64 row = i + r * rows, col = j + c * cols, at = row * a.n + col;
        if (row < a.m && col < a.n) store(a.z, at, a.beta ? sum[r][c] + a.beta * load(a.z, at) : sum[r][c]);
      }
  }
}
