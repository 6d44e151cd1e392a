// What layer normalisation and embedding of every device must compute.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"

namespace headrace::test {

template <typename Target>
class KernelsSequencesSuite : public KernelsFixture<Target> {
 protected:
  static inline const std::vector<Shape> kShapes{{1, 1}, {3, 7}, {64, 10}, {5, 300}, {129, 65}};

  // Of one row, in double.
  static Reals normalized(const Reals& row, double epsilon) {
    const auto count = static_cast<double>(row.size());
    double mean = 0, variance = 0;
    for (const double value : row) mean += value / count;
    for (const double value : row) variance += (value - mean) * (value - mean) / count;
    Reals result;
    for (const double value : row) result.push_back((value - mean) / std::sqrt(variance + epsilon));
    return result;
  }
};
TYPED_TEST_SUITE_P(KernelsSequencesSuite);

TYPED_TEST_P(KernelsSequencesSuite, LayerNormAndItsGradients) {
  for (const Shape& shape : this->kShapes) {
    for (const bool affine : {true, false}) {
      const std::int64_t rows = shape[0], columns = shape[1];
      const TensorView x = this->random(shape, 1), dy = this->random(shape, 2);
      const TensorView gamma = this->random({columns}, 3), beta = this->random({columns}, 4);
      const kernel::LayerNorm norm{.gamma = affine ? gamma : TensorView{},
                                   .beta = affine ? beta : TensorView{},
                                   .saved_mean = this->result({rows}),
                                   .saved_inv_std = this->result({rows}),
                                   .epsilon = 0.01F};
      const TensorView y = this->result(shape), dx = this->result(shape);
      const TensorView dgamma = this->result({columns}), dbeta = this->result({columns});
      this->run([&](Stream& stream) { this->kernels().layer_norm_forward(stream, {x, y, norm}); }, {y});
      this->run(
          [&](Stream& stream) {
            this->kernels().layer_norm_backward(stream, {x, dy, dgamma, dbeta, dx, norm});
          },
          {dgamma, dbeta, dx});
      const Reals xs = this->read_reals(x), dys = this->read_reals(dy), gammas = this->read_reals(gamma),
                  betas = this->read_reals(beta);
      Reals ys, dxs, dgammas(static_cast<std::size_t>(columns)), dbetas(static_cast<std::size_t>(columns));
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto begin = static_cast<std::size_t>(row * columns);
        const Reals of(xs.begin() + row * columns, xs.begin() + (row + 1) * columns);
        const Reals n = this->normalized(of, 0.01);
        const auto scaled = [&](const Reals& at) {
          Reals result = this->normalized(at, 0.01);
          for (std::size_t c = 0; affine && c < result.size(); ++c) result[c] = result[c] * gammas[c] + betas[c];
          return result;
        };
        for (const double value : scaled(of)) ys.push_back(value);
        const Reals slopes(dys.begin() + row * columns, dys.begin() + (row + 1) * columns);
        for (const double value : differences(scaled, of, slopes)) dxs.push_back(value);
        for (std::size_t c = 0; c < n.size(); ++c) {
          dgammas[c] += dys[begin + c] * n[c];
          dbetas[c] += dys[begin + c];
        }
      }
      this->expect_close(y, ys, 2e-6, shape.to_string());
      this->expect_close(dx, dxs, 2e-5, shape.to_string());
      this->expect_close(dgamma, dgammas, 3e-6, shape.to_string());
      this->expect_close(dbeta, dbetas, 3e-6, shape.to_string());
      // In place, without the variables' gradients: the same bits.
      const auto apart = this->template read<float>(dx);
      this->kernels().layer_norm_backward(this->stream(), {x, dy, {}, {}, dy, norm});
      EXPECT_EQ(this->template read<float>(dy), apart);
    }
  }
}

// Far from 0, where squares would lose all digits.
TYPED_TEST_P(KernelsSequencesSuite, LayerNormOfLargeNumbers) {
  const TensorView x = this->tensor({1, 4}, std::vector<float>{10'000, 10'001, 10'002, 10'003});
  const kernel::LayerNorm norm{.gamma = {},
                               .beta = {},
                               .saved_mean = this->result({1}),
                               .saved_inv_std = this->result({1}),
                               .epsilon = 1e-6F};
  const TensorView y = this->result({1, 4});
  this->kernels().layer_norm_forward(this->stream(), {x, y, norm});
  this->expect_close(y, this->normalized({0, 1, 2, 3}, 1e-6), 1e-6);
}

TYPED_TEST_P(KernelsSequencesSuite, EmbeddingAndItsGradient) {
  for (const std::int64_t entries : {1, 9, 1000}) {
    for (const std::int64_t columns : {1, 16, 33}) {
      constexpr std::int64_t kRows = 83;
      std::vector<float> ids;
      for (std::int64_t row = 0; row < kRows; ++row)
        ids.push_back(static_cast<float>((row * row + row / 5) % entries));
      const TensorView numbers = this->tensor({kRows}, ids), table = this->random({entries, columns}, 1);
      const TensorView dy = this->random({kRows, columns}, 2), y = this->result({kRows, columns});
      const TensorView dtable = this->result({entries, columns});
      this->run([&](Stream& stream) { this->kernels().embed(stream, {numbers, table, y}); }, {y});
      this->run([&](Stream& stream) { this->kernels().embed_backward(stream, {numbers, dy, dtable}); }, {dtable});
      const auto vectors = this->template read<float>(table), slopes = this->template read<float>(dy);
      std::vector<float> expected, sums(vectors.size());
      for (std::size_t row = 0; row < ids.size(); ++row) {
        for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
          const std::size_t at = static_cast<std::size_t>(ids[row]) * static_cast<std::size_t>(columns) + c;
          expected.push_back(vectors[at]);
          sums[at] +=
              slopes[row * static_cast<std::size_t>(columns) + c];  // in the order of rows, on every device
        }
      }
      EXPECT_EQ(this->template read<float>(y), expected);
      EXPECT_EQ(this->template read<float>(dtable), sums);
    }
  }
}

TYPED_TEST_P(KernelsSequencesSuite, NumbersWithoutAnEntryAreNaNAndLearnNothing) {
  const TensorView ids = this->tensor({4}, std::vector<float>{-1, 2, 1, std::nanf("")});
  const TensorView table = this->random({2, 3}, 1), y = this->result({4, 3}), dtable = this->result({2, 3});
  this->kernels().embed(this->stream(), {ids, table, y});
  const auto results = this->template read<float>(y);
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(std::isnan(results[i]), i / 3 != 2) << i;
  this->kernels().embed_backward(this->stream(), {ids, this->random({4, 3}, 2), dtable});
  const auto gradients = this->template read<float>(dtable);
  for (std::size_t i = 0; i < gradients.size(); ++i) EXPECT_EQ(gradients[i] != 0, i / 3 == 1) << i;
}

TYPED_TEST_P(KernelsSequencesSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView x = this->random({3, 4}, 1), y = this->result({3, 5}), three = this->result({3});
  const kernel::LayerNorm norm{.gamma = {}, .beta = {}, .saved_mean = three, .saved_inv_std = three};
  Kernels& kernels = this->kernels();
  Stream& stream = this->stream();
  EXPECT_THROW(kernels.layer_norm_forward(stream, {x, y, norm}), ConfigError);
  EXPECT_THROW(kernels.layer_norm_forward(stream, {x, x, {}}), ConfigError);
  EXPECT_THROW(kernels.layer_norm_backward(stream, {x, x, three, {}, {}, norm}), ConfigError);
  EXPECT_THROW(kernels.embed(stream, {three, x, y}), ConfigError);
  EXPECT_THROW(kernels.embed_backward(stream, {this->result({2}), x, this->result({9, 4})}), ConfigError);
  stream.synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsSequencesSuite, LayerNormAndItsGradients, LayerNormOfLargeNumbers,
                            EmbeddingAndItsGradient, NumbersWithoutAnEntryAreNaNAndLearnNothing,
                            WrongShapesAreRefusedAtOnce);

// What products of many matrices, and the mask of attention's scores, of every device must compute.

template <typename Target>
class KernelsAttentionSuite : public KernelsHalfFixture<Target> {
 protected:
  // N and H, then products (m, k) (k, n).
  struct Sizes {
    std::int64_t outer, inner, m, k, n;
  };
  static inline const std::vector<Sizes> kSizes{{1, 1, 1, 1, 1},  {2, 3, 4, 5, 6},  {3, 2, 1, 7, 1},
                                                {1, 5, 33, 8, 9}, {4, 1, 7, 1, 16}, {2, 2, 40, 64, 50}};

  // A matrix's element in memory, given as in the product.
  static std::size_t place(const kernel::Matrices& of, std::int64_t outer, std::int64_t inner, std::int64_t row,
                           std::int64_t column) {
    if (of.transposed) std::swap(row, column);
    const Shape& shape = of.tensor.shape;
    const std::int64_t second = of.interleaved ? row : inner, third = of.interleaved ? inner : row;
    return static_cast<std::size_t>(((outer * shape[1] + second) * shape[2] + third) * shape[3] + column);
  }
  static Shape shape(const Sizes& s, std::int64_t rows, std::int64_t columns, bool interleaved, bool transposed) {
    if (transposed) std::swap(rows, columns);
    return interleaved ? Shape{s.outer, rows, s.inner, columns} : Shape{s.outer, s.inner, rows, columns};
  }
  Reals product(const Sizes& s, const kernel::Matrices& a, const kernel::Matrices& b, double alpha,
                const kernel::Matrices& result) {
    const Reals as = this->read_reals(a.tensor), bs = this->read_reals(b.tensor);
    Reals values(static_cast<std::size_t>(result.tensor.elements()));
    for (std::int64_t o = 0; o < s.outer; ++o) {
      for (std::int64_t i = 0; i < s.inner; ++i) {
        for (std::int64_t m = 0; m < s.m; ++m) {
          for (std::int64_t n = 0; n < s.n; ++n) {
            double sum = 0;
            for (std::int64_t k = 0; k < s.k; ++k) sum += as[place(a, o, i, m, k)] * bs[place(b, o, i, k, n)];
            values[place(result, o, i, m, n)] = alpha * sum;
          }
        }
      }
    }
    return values;
  }
  // Calls function(a, b, result) for all ways to store them, with random operands of these types.
  template <typename Function>
  void each_layout(const Sizes& s, DType operands, DType results, const Function& function) {
    for (int way = 0; way < 32; ++way) {
      const bool ai = way & 1, at = way & 2, bi = way & 4, bt = way & 8, ri = way & 16;
      const auto operand = [&](const Shape& of, std::uint64_t seed) {
        return operands == DType::kBF16 ? this->half(of, seed) : this->random(of, seed);
      };
      const kernel::Matrices a{operand(shape(s, s.m, s.k, ai, at), 1), ai, at};
      const kernel::Matrices b{operand(shape(s, s.k, s.n, bi, bt), 2), bi, bt};
      function(a, b, kernel::Matrices{this->result(shape(s, s.m, s.n, ri, false), results), ri});
    }
  }
};
TYPED_TEST_SUITE_P(KernelsAttentionSuite);

TYPED_TEST_P(KernelsAttentionSuite, ProductsOfManyMatrices) {
  for (const auto& s : this->kSizes) {
    for (const float alpha : {1.0F, 0.3F}) {
      this->each_layout(s, DType::kF32, DType::kF32, [&](const auto& a, const auto& b, const auto& result) {
        this->run(
            [&](Stream& stream) {
              this->kernels().batched_matmul(stream, {a, b, result, alpha, Precision::kF32});
            },
            {result.tensor});
        this->expect_close(result.tensor, this->product(s, a, b, static_cast<double>(alpha), result), 3e-6,
                           a.tensor.shape.to_string() + " by " + b.tensor.shape.to_string());
      });
    }
  }
}

// Operands that bf16 has exactly, so that only the result is rounded.
TYPED_TEST_P(KernelsAttentionSuite, ProductsInBf16) {
  const DType half = this->kernels().activation_type(Precision::kBF16);
  for (const auto& s : this->kSizes) {
    for (const DType results : {DType::kF32, half}) {
      this->each_layout(s, half, results, [&](const auto& a, const auto& b, const auto& result) {
        this->run(
            [&](Stream& stream) {
              this->kernels().batched_matmul(stream, {a, b, result, 0.5F, Precision::kBF16});
            },
            {result.tensor});
        const Reals expected = this->product(s, a, b, 0.5, result);
        this->expect_rounded(result.tensor, expected, 1e-5, a.tensor.shape.to_string());
      });
    }
  }
}

// As attention has them: probabilities in f32 beside activations in bf16, all of a product rounded to bf16.
TYPED_TEST_P(KernelsAttentionSuite, ProductsOfMixedTypes) {
  const DType half = this->kernels().activation_type(Precision::kBF16);
  if (half != DType::kBF16) GTEST_SKIP() << "activations are f32";
  const kernel::Matrices a{this->random({2, 3, 8, 10}, 1)}, b{this->half({2, 10, 3, 4}, 2), true};
  const kernel::Matrices result{this->half_result({2, 8, 3, 4}), true};
  this->kernels().batched_matmul(this->stream(), {a, b, result, 1, Precision::kBF16});
  const kernel::Matrices rounded{this->half({2, 3, 8, 10}, this->template read<float>(a.tensor))};
  this->expect_rounded(result.tensor, this->product({2, 3, 8, 10, 4}, rounded, b, 1, result), 1e-5, "mixed");
}

TYPED_TEST_P(KernelsAttentionSuite, ScoresAreMasked) {
  constexpr std::int64_t kHeads = 3, kQueries = 4, kPositions = 5;
  const Shape shape{2, kHeads, kQueries, kPositions};
  const std::vector<float> mask{1, 1, 0, 1, 0, 0, 0.5F, 1, 0, 1};
  const DType half = this->kernels().activation_type(Precision::kBF16);
  std::vector<TensorView> masks{{}, this->tensor({2, kPositions}, mask)};
  if (half == DType::kBF16) masks.push_back(this->half({2, kPositions}, mask));
  for (const TensorView& given : masks) {
    for (const bool causal : {false, true}) {
      const TensorView scores = this->random(shape, 1);
      auto expected = this->template read<float>(scores);
      for (std::size_t at = 0; at < expected.size(); ++at) {
        const std::size_t s = at % kPositions, t = at / kPositions % kQueries;
        const std::size_t example = at / (kPositions * kQueries * kHeads);
        const bool masked = given.defined() && mask[example * kPositions + s] == 0;
        if (masked || (causal && s > t)) expected[at] = kernel::kMaskedScore;
      }
      this->run([&](Stream& stream) { this->kernels().mask_scores(stream, {scores, given, causal}); }, {scores});
      EXPECT_EQ(this->template read<float>(scores), expected) << causal;
    }
  }
}

// What is left out has no weight, and a row that is left out as a whole has equal ones: in place, too.
TYPED_TEST_P(KernelsAttentionSuite, MaskedScoresHaveNoProbability) {
  const float out = kernel::kMaskedScore;
  const TensorView scores =
      this->tensor({3, 4}, std::vector<float>{1, out, 1, out, out, out, out, out, 0, 0, 0, 0});
  const TensorView apart = this->result({3, 4});
  this->kernels().softmax(this->stream(), {scores, apart});
  this->kernels().softmax(this->stream(), {scores, scores});
  this->expect_close(apart, {0.5, 0, 0.5, 0, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}, 1e-6);
  EXPECT_LT(this->template read<float>(apart)[1], 1e-37F);
  EXPECT_EQ(this->template read<float>(scores), this->template read<float>(apart));
}

TYPED_TEST_P(KernelsAttentionSuite, WrongShapesAreRefusedAtOnce) {
  const auto multiply = [&](const kernel::Matrices& a, const kernel::Matrices& b, const kernel::Matrices& c) {
    this->kernels().batched_matmul(this->stream(), {a, b, c, 1, Precision::kF32});
  };
  const kernel::Matrices a{this->random({2, 3, 4, 5}, 1)}, b{this->random({2, 3, 5, 6}, 1)};
  EXPECT_NO_THROW(multiply(a, b, {this->result({2, 3, 4, 6})}));
  EXPECT_NO_THROW(multiply(a, b, {this->result({2, 4, 3, 6}), true}));
  EXPECT_THROW(multiply(a, b, {this->result({2, 4, 3, 6})}), ConfigError);
  EXPECT_THROW(multiply(a, b, {this->result({2, 3, 6, 4}), false, true}), ConfigError);
  EXPECT_THROW(multiply(a, a, {this->result({2, 3, 4, 6})}), ConfigError);
  EXPECT_THROW(multiply(b, a, {this->result({2, 3, 5, 5})}), ConfigError);
  EXPECT_THROW(multiply(a, b, {this->result({2, 3, 24})}), ConfigError);
  const TensorView scores = this->random({2, 3, 4, 5}, 1);
  EXPECT_THROW(this->kernels().mask_scores(this->stream(), {scores, this->random({2, 4}, 1), false}), ConfigError);
  EXPECT_THROW(this->kernels().mask_scores(this->stream(), {this->random({4, 5}, 1), {}, true}), ConfigError);
  this->stream().synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsAttentionSuite, ProductsOfManyMatrices, ProductsInBf16, ProductsOfMixedTypes,
                            ScoresAreMasked, MaskedScoresHaveNoProbability, WrongShapesAreRefusedAtOnce);

}  // namespace headrace::test
