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
      const Kernels::LayerNorm norm{.gamma = affine ? gamma : TensorView{},
                                    .beta = affine ? beta : TensorView{},
                                    .saved_mean = this->result({rows}),
                                    .saved_inv_std = this->result({rows}),
                                    .epsilon = 0.01F};
      const TensorView y = this->result(shape), dx = this->result(shape);
      const TensorView dgamma = this->result({columns}), dbeta = this->result({columns});
      this->run([&](Stream& stream) { this->kernels().layer_norm_forward(stream, x, norm, y); }, {y});
      this->run(
          [&](Stream& stream) { this->kernels().layer_norm_backward(stream, x, dy, norm, dgamma, dbeta, dx); },
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
      this->kernels().layer_norm_backward(this->stream(), x, dy, norm, {}, {}, dy);
      EXPECT_EQ(this->template read<float>(dy), apart);
    }
  }
}

// Far from 0, where squares would lose all digits.
TYPED_TEST_P(KernelsSequencesSuite, LayerNormOfLargeNumbers) {
  const TensorView x = this->tensor({1, 4}, std::vector<float>{10'000, 10'001, 10'002, 10'003});
  const Kernels::LayerNorm norm{.gamma = {},
                                .beta = {},
                                .saved_mean = this->result({1}),
                                .saved_inv_std = this->result({1}),
                                .epsilon = 1e-6F};
  const TensorView y = this->result({1, 4});
  this->kernels().layer_norm_forward(this->stream(), x, norm, y);
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
      this->run([&](Stream& stream) { this->kernels().embed(stream, numbers, table, y); }, {y});
      this->run([&](Stream& stream) { this->kernels().embed_backward(stream, numbers, dy, dtable); }, {dtable});
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
  this->kernels().embed(this->stream(), ids, table, y);
  const auto results = this->template read<float>(y);
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(std::isnan(results[i]), i / 3 != 2) << i;
  this->kernels().embed_backward(this->stream(), ids, this->random({4, 3}, 2), dtable);
  const auto gradients = this->template read<float>(dtable);
  for (std::size_t i = 0; i < gradients.size(); ++i) EXPECT_EQ(gradients[i] != 0, i / 3 == 1) << i;
}

TYPED_TEST_P(KernelsSequencesSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView x = this->random({3, 4}, 1), y = this->result({3, 5}), three = this->result({3});
  const Kernels::LayerNorm norm{.gamma = {}, .beta = {}, .saved_mean = three, .saved_inv_std = three};
  Kernels& kernels = this->kernels();
  Stream& stream = this->stream();
  EXPECT_THROW(kernels.layer_norm_forward(stream, x, norm, y), ConfigError);
  EXPECT_THROW(kernels.layer_norm_forward(stream, x, {}, x), ConfigError);
  EXPECT_THROW(kernels.layer_norm_backward(stream, x, x, norm, three, {}, {}), ConfigError);
  EXPECT_THROW(kernels.embed(stream, three, x, y), ConfigError);
  EXPECT_THROW(kernels.embed_backward(stream, this->result({2}), x, this->result({9, 4})), ConfigError);
  stream.synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsSequencesSuite, LayerNormAndItsGradients, LayerNormOfLargeNumbers,
                            EmbeddingAndItsGradient, NumbersWithoutAnEntryAreNaNAndLearnNothing,
                            WrongShapesAreRefusedAtOnce);

}  // namespace headrace::test
