/* Matrix products whose factors are rounded to bfloat16 and whose sums are float: float in, float out. Compiled by
   library.py for the processor at hand; called by products.py. Without AVX512-BF16 nothing is left but `available`.

   C [M, N] = A [M, K] B [K, N]. The instruction adds the products of two neighbouring k at once, so both factors are
   kept as pairs of neighbouring k, 32 bits each. B is packed once for many products: panels of WIDTH columns, in each the
   pairs of one k after the other. A is rounded block by block inside the product, which has to read it anyway: no pass
   over the numbers is made for that alone.

   A row of C depends on its own row of A only, and is summed in the same order however many other rows there are. */

#include <stddef.h>
#include <stdint.h>

typedef ptrdiff_t size;

#ifndef __AVX512BF16__

int available(void) { return 0; }

#else

#include <immintrin.h>

#define LANES 16                   /* floats, or pairs, of a register */
#define ROWS 6                     /* of a tile of C: ROWS x VECTORS sums, 24 of the 32 registers */
#define VECTORS 4
#define WIDTH (VECTORS * LANES)
#define DEPTH 1024                 /* of a block of A: numbers of a row, */
#define HEIGHT 192                 /* and rows, a multiple of ROWS; the block stays in the second cache */

int available(void) { return 1; }

static inline size smaller(size a, size b) { return a < b ? a : b; }

static inline size whole_lanes(size n) { return (n + LANES - 1) / LANES * LANES; }

static inline __mmask16 lanes(size n) { return n >= LANES ? 0xffff : n > 0 ? (__mmask16)((1u << n) - 1) : 0; }

/* Both rounded, the even ones in the lower half of each lane: pairs of neighbouring k. */
static inline __m512i pair_up(__m512 even, __m512 odd) {
    __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(even));
    __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(odd));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* Pairs of neighbouring rows, [(K + 1) / 2, N], of K rows; past the last row and the last column stand zeros. */
static void pair_rows(size K, size N, const float *from, size stride, uint32_t *to, size to_stride) {
    for (size k = 0; k < K; k += 2, to += to_stride) {
        const float *even = from + k * stride, *odd = even + stride;
        for (size n = 0; n < N; n += LANES) {
            __mmask16 mask = lanes(N - n);
            /* An odd K is made even by a row of zeros, of which nothing may be read. */
            __m512 below = k + 1 < K ? _mm512_maskz_loadu_ps(mask, odd + n) : _mm512_setzero_ps();
            _mm512_storeu_si512(to + n, pair_up(_mm512_maskz_loadu_ps(mask, even + n), below));
        }
    }
}

/* Pairs of neighbours in each of M rows, [M, (K + 1) / 2]. */
static void pair_neighbours(size M, size K, const float *from, size stride, uint32_t *to, size to_stride) {
    for (size m = 0; m < M; m++, from += stride, to += to_stride) {
        for (size k = 0; k < K; k += 2 * LANES) {
            __m512 low = _mm512_maskz_loadu_ps(lanes(K - k), from + k);
            __m512 high = _mm512_maskz_loadu_ps(lanes(K - k - LANES), from + k + LANES);
            /* No further than the row goes: behind it the next one stands. */
            _mm512_mask_storeu_epi32(to + k / 2, lanes((K - k + 1) / 2), (__m512i)_mm512_cvtne2ps_pbh(high, low));
        }
    }
}

/* B [K, N], of which k_stride or n_stride is 1, as panels: (K + 1) / 2 x whole_lanes(N) pairs. */
void pack(size K, size N, const float *from, size k_stride, size n_stride, uint32_t *to) {
    size pairs = (K + 1) / 2;
    __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i places = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)n_stride)); /* of 16 columns */
    for (size first = 0; first < N; first += WIDTH) {
        size used = smaller(WIDTH, N - first), width = whole_lanes(used);
        uint32_t *panel = to + first * pairs;
        /* Rows as they lie, several columns at a load; the other way round they have to be gathered. */
        if (n_stride == 1) {
            pair_rows(K, used, from + first, k_stride, panel, width);
            continue;
        }
        for (size n = 0; n < used; n += LANES) {
            const float *column = from + (first + n) * n_stride;
            __mmask16 mask = lanes(used - n);
            __m512 zero = _mm512_setzero_ps();
            for (size k = 0; k < K; k += 2) {
                __m512 even = _mm512_mask_i32gather_ps(zero, mask, places, column + k, 4);
                __m512 odd = k + 1 < K ? _mm512_mask_i32gather_ps(zero, mask, places, column + k + 1, 4) : zero;
                _mm512_storeu_si512(panel + k / 2 * width + n, pair_up(even, odd));
            }
        }
    }
}

/* A tile of C from `pairs` pairs of k. Its size is known to the compiler, which keeps all sums in registers. */
static inline __attribute__((always_inline)) void tile(const int rows, const int vectors, size pairs, const uint32_t *a,
                                                       size a_row, size a_pair, const uint32_t *b, const float *bias,
                                                       float *c, size c_row, __mmask16 last, int add) {
    __m512 sum[ROWS][VECTORS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sum[r][v] = _mm512_setzero_ps();
    }
    for (size p = 0; p < pairs; p++, a += a_pair, b += vectors * LANES) {
        __m512bh right[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) right[v] = (__m512bh)_mm512_loadu_si512(b + v * LANES);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            __m512bh left = (__m512bh)_mm512_set1_epi32((int)a[r * a_row]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], left, right[v]);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        __mmask16 mask = v == vectors - 1 ? last : 0xffff;
        __m512 more = bias ? _mm512_maskz_loadu_ps(mask, bias + v * LANES) : _mm512_setzero_ps();
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            float *to = c + r * c_row + v * LANES;
            __m512 total = _mm512_add_ps(sum[r][v], add ? _mm512_maskz_loadu_ps(mask, to) : more);
            _mm512_mask_storeu_ps(to, mask, total);
        }
    }
}

/* Each size of tile is compiled by itself, its loops unrolled; 8 is more than any number of vectors. */
#define CASE(R, V)                                                                   \
    case R * 8 + V:                                                                  \
        tile(R, V, pairs, a, a_row, a_pair, b, bias, c, c_row, last, add);           \
        break;
#define CASES(V) CASE(1, V) CASE(2, V) CASE(3, V) CASE(4, V) CASE(5, V) CASE(6, V)

static void any_tile(int rows, int vectors, size pairs, const uint32_t *a, size a_row, size a_pair, const uint32_t *b,
                     const float *bias, float *c, size c_row, __mmask16 last, int add) {
    switch (rows * 8 + vectors) { CASES(1) CASES(2) CASES(3) CASES(4) }
}

/* C = A B + bias, or, where `add` is 1, C += A B. One of A's strides is 1; B is packed; a bias may be missing. */
void product(size M, size N, size K, const float *A, size m_stride, size k_stride, const uint32_t *B,
             const float *bias, float *C, size c_row, size add) {
    /* 384 kB on the stack: threads that multiply at once do not share it. */
    uint32_t block[HEIGHT * DEPTH / 2];
    size all_pairs = (K + 1) / 2;
    for (size top = 0; top < M; top += HEIGHT) {
        size height = smaller(HEIGHT, M - top);
        size start = 0;
        do { /* once where K is 0: zeros are written then */
            size depth = smaller(DEPTH, K - start), pairs = (depth + 1) / 2, a_row = pairs, a_pair = 1;
            const float *from = A + top * m_stride + start * k_stride;
            if (k_stride == 1) {
                pair_neighbours(height, depth, from, m_stride, block, pairs);
            } else {
                /* A turned matrix is paired as it lies, and read column by column. HEIGHT is a multiple of LANES, so
                   the block holds it. */
                a_row = 1, a_pair = whole_lanes(height);
                pair_rows(depth, height, from, k_stride, block, a_pair);
            }
            for (size n = 0; n < N; n += WIDTH) {
                size width = smaller(WIDTH, whole_lanes(N - n)), vectors = width / LANES;
                /* All panels before are WIDTH wide; DEPTH is even, so that no pair is torn between two blocks. */
                const uint32_t *b = B + n * all_pairs + start / 2 * width;
                __mmask16 last = lanes(N - n - (vectors - 1) * LANES);
                for (size m = 0; m < height; m += ROWS)
                    any_tile((int)smaller(ROWS, height - m), (int)vectors, pairs, block + m * a_row, a_row, a_pair, b,
                             bias ? bias + n : NULL, C + (top + m) * c_row + n, c_row, last, add || start);
            }
            /* From the second block of k on the sums are added to what the first one wrote, its bias included. */
            start += DEPTH;
        } while (start < K);
    }
}

#endif
