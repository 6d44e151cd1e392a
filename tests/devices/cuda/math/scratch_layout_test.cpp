#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/cuda/math/scratch_layout.h"

namespace headrace::cuda {
namespace {

using Matrix = std::vector<double>;

const std::vector<MuonShape> kMuonShapes{{64, 216}, {5, 7}, {7, 5}, {16, 16}, {1, 9}, {9, 1}, {24, 108}};

Matrix random_matrix(std::int64_t elements, std::uint64_t seed) {
  Philox random({.seed = seed, .epoch = 0, .record = 0, .operation = 0});
  Matrix values(static_cast<std::size_t>(elements));
  for (double& value : values) value = static_cast<double>(random.uniform()) - 0.5;
  return values;
}

// X of (rows, columns) through one iteration: a X + (b A + c A A) X with A = X X'.
Matrix iterated(const Matrix& x, std::int64_t rows, std::int64_t columns) {
  const auto at = [](std::int64_t row, std::int64_t column, std::int64_t width) {
    return static_cast<std::size_t>(row * width + column);
  };
  Matrix a(static_cast<std::size_t>(rows * rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < rows; ++j) {
      for (std::int64_t k = 0; k < columns; ++k) a[at(i, j, rows)] += x[at(i, k, columns)] * x[at(j, k, columns)];
    }
  }
  Matrix polynomial(a.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < rows; ++j) {
      double square = 0;
      for (std::int64_t k = 0; k < rows; ++k) square += a[at(i, k, rows)] * a[at(k, j, rows)];
      polynomial[at(i, j, rows)] = -4.7750 * a[at(i, j, rows)] + 2.0315 * square;
    }
  }
  Matrix result(x.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 3.4445 * x[at(i, j, columns)];
      for (std::int64_t k = 0; k < rows; ++k) sum += polynomial[at(i, k, rows)] * x[at(k, j, columns)];
      result[at(i, j, columns)] = sum;
    }
  }
  return result;
}

TEST(MuonLayout, TheExtentHoldsAllInMultiplesOfEight) {
  MuonExtent extent;
  for (const MuonShape& shape : kMuonShapes) {
    extent = widened(extent, shape);
    EXPECT_LE(shape.rows(), shape.columns());
  }
  EXPECT_EQ(extent.rows, 64);
  EXPECT_EQ(extent.columns, 216);
  EXPECT_EQ(widened({}, {3, 5}).columns, 8);
  EXPECT_EQ(widened({.rows = 256, .columns = 8}, {64, 216}).rows, 256);
}

TEST(MuonLayout, EveryElementHasOnePlace) {
  for (const MuonShape& shape : kMuonShapes) {
    const MuonExtent extent = widened(widened({}, shape), {32, 240});
    std::int64_t held = 0;
    for (std::int64_t position = 0; position < extent.elements(); ++position) {
      const std::int64_t element = element_at(shape, extent, position);
      if (element < 0) continue;
      ++held;
      ASSERT_LT(element, shape.outputs * shape.inputs);
      ASSERT_EQ(position_of(shape, extent, element), position) << shape.outputs << " x " << shape.inputs;
    }
    EXPECT_EQ(held, shape.outputs * shape.inputs);
  }
}

// What the GPU does, in doubles: padded, turned where the matrix is tall, iterated, and taken back.
TEST(MuonLayout, PaddingAndTurningChangeNothing) {
  for (const MuonShape& shape : kMuonShapes) {
    const std::int64_t elements = shape.outputs * shape.inputs;
    Matrix u = random_matrix(elements, static_cast<std::uint64_t>(elements));
    double norm = 0;
    for (const double value : u) norm += value * value;
    for (double& value : u) value /= std::sqrt(norm);
    const Matrix wanted = iterated(u, shape.outputs, shape.inputs);

    const MuonExtent extent = widened(widened({}, shape), {32, 40});
    Matrix padded(static_cast<std::size_t>(extent.elements()));
    for (std::int64_t i = 0; i < extent.elements(); ++i) {
      const std::int64_t element = element_at(shape, extent, i);
      if (element >= 0) padded[static_cast<std::size_t>(i)] = u[static_cast<std::size_t>(element)];
    }
    const Matrix result = iterated(padded, extent.rows, extent.columns);
    for (std::int64_t i = 0; i < elements; ++i) {
      ASSERT_NEAR(result[static_cast<std::size_t>(position_of(shape, extent, i))],
                  wanted[static_cast<std::size_t>(i)], 1e-12)
          << shape.outputs << " x " << shape.inputs << " at " << i;
    }
  }
}

TEST(MuonLayout, TheUpdateLooksAhead) {
  EXPECT_FLOAT_EQ(muon_update(2.0F, 3.0F, 0.5F, true), 3.5F);
  EXPECT_FLOAT_EQ(muon_update(2.0F, 3.0F, 0.5F, false), 3.0F);
}

TEST(ScratchLayout, PiecesFollowEachOtherOnBoundaries) {
  ScratchLayout layout;
  EXPECT_EQ(layout.add(1), 0U);
  EXPECT_EQ(layout.add(0), 256U);
  EXPECT_EQ(layout.add(257), 256U);
  EXPECT_EQ(layout.add(256), 768U);
  EXPECT_EQ(layout.bytes(), 1024U);
}

}  // namespace
}  // namespace headrace::cuda
