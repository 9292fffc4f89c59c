/* The elementwise work of a step of the recurrent loops, each in one pass over a row; the matrix products between are
   PyTorch's. Compiled by library.py, once for float and, with -DDOUBLE, once for double; called by kernels.py.

   Rows are independent of each other: what comes out for one does not depend on which others are in the batch. No
   option of the compiler that ignores NaN is used: NaN in gives NaN out.

   Sizes: H state, S positions of the memory, C their size, A attention size. A `stride` counts numbers from one row to the
   next; arrays without one are contiguous. `order` says which row of the memory a row attends to. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANES 16  /* numbers that go through the exponential together: what is left of a row is padded to as many */
#define CHUNK 512 /* a multiple of it: numbers of a row that are worked on at once */

/* SERIES is 1 / n!, the highest n first: for |r| <= ln(2) / 2 the first term left out is below the rounding of the sum. */
#ifdef DOUBLE
typedef double real;
typedef uint64_t bits;
#define ROUND rint
#define LOWEST -708.0
#define HIGHEST 709.0
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define BIAS 1023
#define MANTISSA 52
static const real SERIES[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                              1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                              1.0 / 6,          1.0 / 2,         1.0,            1.0};
#else
typedef float real;
typedef uint32_t bits;
#define ROUND rintf
#define LOWEST -87.0f
#define HIGHEST 88.0f
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f
#define BIAS 127
#define MANTISSA 23
static const real SERIES[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f, 1.0f};
#endif

typedef ptrdiff_t size;

/* e^x = 2^k e^r with |r| <= ln(2) / 2, by the Taylor series of e^r; x is held between LOWEST and HIGHEST. */
static inline real exponential(real x) {
    /* NaN fails both comparisons and goes through. */
    x = x < (real)LOWEST ? (real)LOWEST : x;
    x = x > (real)HIGHEST ? (real)HIGHEST : x;
    real k = ROUND(x * (real)1.44269504088896340736);
    /* ln(2) in two parts, the first with so few digits that k times it is exact: r loses none of its own. */
    real r = (x - k * LN2_HIGH) - k * LN2_LOW;
    real sum = SERIES[0];
    for (size term = 1; term < (size)(sizeof SERIES / sizeof SERIES[0]); term++) sum = sum * r + SERIES[term];
    /* The bits of 2^k are its exponent alone; between LOWEST and HIGHEST that is one of a normal number. */
    bits scale = (bits)((bits)(int32_t)k + BIAS) << MANTISSA;
    real power;
    memcpy(&power, &scale, sizeof power);
    return sum * power;
}

static inline real logistic(real x) { return 1 / (1 + exponential(-x)); }

static inline size smaller(size a, size b) { return a < b ? a : b; }

/* sigma of n numbers in place; the numbers after them up to a multiple of LANES are overwritten. */
static inline void logistic_all(size n, real *numbers) {
    for (size start = 0; start < n; start += LANES) {
#pragma omp simd
        for (size lane = 0; lane < LANES; lane++) numbers[start + lane] = logistic(numbers[start + lane]);
    }
}

static inline void gate_rows(size rows, size H, const real *inputs, const real *further, const real *recurrent,
                             size recurrent_stride, const real *bias, const real *hidden, real *gates,
                             size gates_stride, real *candidate, real *next) {
    real work[CHUNK] = {0};
    for (size row = 0; row < rows; row++) {
        const real *i = inputs + row * 3 * H, *f = further ? further + row * 3 * H : NULL, *s = hidden + row * H;
        const real *p = recurrent + row * recurrent_stride;
        real *g = gates + row * gates_stride, *n = candidate + row * H, *out = next + row * H;
        for (size start = 0, width; start < 2 * H; start += width) {
            width = smaller(2 * H - start, CHUNK);
#pragma omp simd
            for (size h = 0; h < width; h++)
                work[h] = (f ? i[start + h] + f[start + h] : i[start + h]) + (p[start + h] + bias[start + h]);
            logistic_all(width, work);
            /* Only now: where `gates` is `recurrent`, r and z overwrite the products that made them. */
            memcpy(g + start, work, width * sizeof(real));
        }
        for (size start = 0, width; start < H; start += width) {
            width = smaller(H - start, CHUNK);
            size at = 2 * H + start;
#pragma omp simd
            for (size h = 0; h < width; h++) {
                /* p_n itself is kept, beside r and z: the gradient of r is made of it. */
                g[at + h] = p[at + h] + bias[at + h];
                /* tanh x = 2 sigma(2x) - 1, so that one exponential serves all three gates. */
                work[h] = 2 * ((f ? i[at + h] + f[at + h] : i[at + h]) + g[start + h] * g[at + h]);
            }
            logistic_all(width, work);
#pragma omp simd
            for (size h = 0; h < width; h++) {
                real fresh = 2 * work[h] - 1;
                n[start + h] = fresh;
                out[start + h] = fresh + g[H + start + h] * (s[start + h] - fresh);
            }
        }
    }
}

/* r, z = sigma(i_rz + p_rz), n = tanh(i_n + r p_n), s' = n + z (s - n) with i = inputs + further, or the inputs alone,
   and p = recurrent + bias. Writes r, z and p_n to `gates`, which may be `recurrent` itself. */
void gate_forward(size rows, size H, const real *inputs, const real *further, const real *recurrent,
                  size recurrent_stride, const real *bias, const real *hidden, real *gates, size gates_stride,
                  real *candidate, real *next) {
    /* Two copies of the loops: in one alone the test of `further` becomes a masked load, slow on an address of 0. */
    if (further)
        gate_rows(rows, H, inputs, further, recurrent, recurrent_stride, bias, hidden, gates, gates_stride, candidate,
                  next);
    else
        gate_rows(rows, H, inputs, NULL, recurrent, recurrent_stride, bias, hidden, gates, gates_stride, candidate,
                  next);
}

/* From the gradient of s' those of i and of p, and, where there is an earlier state, z times it added to its own. */
void gate_backward(size rows, size H, const real *total, const real *gates, size gates_stride, const real *candidate,
                   const real *hidden, real *to_inputs, real *to_recurrent, size to_recurrent_stride, real *to_hidden) {
    for (size row = 0; row < rows; row++) {
        const real *t = total + row * H, *g = gates + row * gates_stride, *n = candidate + row * H;
        const real *s = hidden + row * H;
        real *ti = to_inputs + row * 3 * H, *tp = to_recurrent + row * to_recurrent_stride;
        real *ts = to_hidden ? to_hidden + row * H : NULL;
#pragma omp simd
        for (size h = 0; h < H; h++) {
            real r = g[h], z = g[H + h], to_n = t[h] * (1 - z) * (1 - n[h] * n[h]);
            real to_z = t[h] * (s[h] - n[h]) * (z * (1 - z));
            real to_r = to_n * g[2 * H + h] * (r * (1 - r));
            ti[h] = tp[h] = to_r;
            ti[H + h] = tp[H + h] = to_z;
            ti[2 * H + h] = to_n;
            tp[2 * H + h] = to_n * r;
        }
        if (ts) {
#pragma omp simd
            for (size h = 0; h < H; h++) ts[h] += t[h] * g[H + h];
        }
    }
}

/* out += sum_j weight_j row_j over S rows of n numbers */
static void add_rows(size S, size n, const real *weight, const real *rows, real *restrict out) {
    size j = 0;
    /* Four rows a pass: `out` is read and written a quarter as often. */
    for (; j + 4 <= S; j += 4) {
        const real *a = rows + j * n, *b = a + n, *c = b + n, *d = c + n;
        real wa = weight[j], wb = weight[j + 1], wc = weight[j + 2], wd = weight[j + 3];
#pragma omp simd
        for (size i = 0; i < n; i++) out[i] += (wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i]);
    }
    for (; j < S; j++) {
        const real *a = rows + j * n, wa = weight[j];
#pragma omp simd
        for (size i = 0; i < n; i++) out[i] += wa * a[i];
    }
}

/* alpha = softmax(sigma(keys + query) energy + attention_bias), context = sum_j alpha_j annotation_j. Adds the bias to the
   query, where the way back looks for it. A position whose attention bias is -inf is not looked at. */
void attention_forward(size rows, size S, size A, size C, const int64_t *order, const real *keys,
                       const real *annotations, const real *attention_bias, real *queries, size query_stride,
                       const real *bias, const real *energy, real *weights, real *contexts) {
    real work[CHUNK] = {0};
    for (size row = 0; row < rows; row++) {
        size at = (order ? (size)order[row] : row) * S;
        real *q = queries + row * query_stride, *w = weights + row * S, *context = contexts + row * C;
        real highest = -INFINITY, total = 0;
#pragma omp simd
        for (size a = 0; a < A; a++) q[a] += bias[a];
        for (size j = 0; j < S; j++) {
            const real *key = keys + (at + j) * A;
            real sum = attention_bias[at + j];
            /* Padding costs nothing: its energy is known, and its weight is 0 whatever the keys say. */
            for (size start = 0, width; sum != -INFINITY && start < A; start += width) {
                width = smaller(A - start, CHUNK);
#pragma omp simd
                for (size a = 0; a < width; a++) work[a] = key[start + a] + q[start + a];
                logistic_all(width, work);
#pragma omp simd reduction(+ : sum)
                for (size a = 0; a < width; a++) sum += energy[start + a] * work[a];
            }
            w[j] = sum;
            highest = sum > highest ? sum : highest;
        }
        /* The highest taken off, no exponential overflows; what lies below LOWEST is 0 instead of being held there. */
        for (size j = 0; j < S; j++) w[j] = w[j] - highest < (real)LOWEST ? 0 : exponential(w[j] - highest);
        for (size j = 0; j < S; j++) total += w[j];
        for (size j = 0; j < S; j++) w[j] /= total;
        memset(context, 0, C * sizeof(real));
        add_rows(S, C, w, annotations + at * C, context);
    }
}

/* From the gradients of the contexts those of the queries; adds to those of the keys, which the caller multiplies by
   `energy` after the last step, and of `energy` itself. A place of weight 0 gets 0. `to_energies` has room for
   those of one row. */
void attention_backward(size rows, size S, size A, size C, const int64_t *order, const real *keys,
                        const real *annotations, const real *queries, size query_stride, const real *energy,
                        const real *weights, const real *to_contexts, real *to_energies, real *to_queries,
                        size to_query_stride, real *to_keys, real *to_energy) {
    real work[CHUNK] = {0};
    for (size row = 0; row < rows; row++) {
        size at = (order ? (size)order[row] : row) * S;
        const real *w = weights + row * S, *t = to_contexts + row * C, *q = queries + row * query_stride;
        real *te = to_energies, *tq = to_queries + row * to_query_stride, mean = 0;
        for (size j = 0; j < S; j++) {
            const real *annotation = annotations + (at + j) * C;
            real sum = 0;
            if (w[j] != 0) {
#pragma omp simd reduction(+ : sum)
                for (size c = 0; c < C; c++) sum += t[c] * annotation[c];
            }
            te[j] = sum;
            mean += w[j] * sum;
        }
        /* The way back through softmax: alpha_j (t_j - sum_k alpha_k t_k). */
        for (size j = 0; j < S; j++) te[j] = w[j] != 0 ? w[j] * (te[j] - mean) : 0;
        memset(tq, 0, A * sizeof(real));
        for (size j = 0; j < S; j++) {
            const real *key = keys + (at + j) * A;
            real *tk = to_keys + (at + j) * A, share = te[j];
            for (size start = 0, width; w[j] != 0 && start < A; start += width) {
                width = smaller(A - start, CHUNK);
#pragma omp simd
                for (size a = 0; a < width; a++) work[a] = key[start + a] + q[start + a];
                logistic_all(width, work);
#pragma omp simd
                for (size a = 0; a < width; a++) {
                    /* The energy vector is a factor of every slope of unit a: it comes once, at the end. */
                    real part = share * work[a], slope = part * (1 - work[a]);
                    to_energy[start + a] += part;
                    tq[start + a] += slope;
                    tk[start + a] += slope;
                }
            }
        }
#pragma omp simd
        for (size a = 0; a < A; a++) tq[a] *= energy[a];
    }
}

/* products += sum_t weight_t value_t^T, [B, S, C], of rows in packed order, `counts` of them at each step. */
void sum_of_products(size num_steps, const int64_t *counts, const int64_t *order, size S, size C, const real *weights,
                     const real *values, real *products) {
    size batch = num_steps ? (size)counts[0] : 0;
    for (size row = 0; row < batch; row++) {
        size at = row;
        /* Row by row and not step by step: one row adds up its own [S, C] while that is still in the cache. */
        real *product = products + (size)order[row] * S * C;
        /* Rows are sorted by length: the first step without this one is the end of it. */
        for (size step = 0; step < num_steps && row < (size)counts[step]; at += (size)counts[step++]) {
            const real *value = values + at * C;
            for (size j = 0; j < S; j++) {
                real w = weights[at * S + j], *out = product + j * C;
#pragma omp simd
                for (size c = 0; c < C; c++) out[c] += w * value[c];
            }
        }
    }
}
