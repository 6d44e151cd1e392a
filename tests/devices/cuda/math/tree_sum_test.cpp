// What each rank sends, receives and keeps; that sums have the tree's bits is
// tests/conformance/twin_test.cpp.
#include "headrace/devices/cuda/math/tree_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace headrace::cuda {
namespace {

struct RecordedExchange {
  std::vector<Transfer> outgoing, incoming;
};

// What one rank asks for.
struct RecordingLink {
  std::vector<RecordedExchange>& exchanges;
  std::vector<std::int64_t>& summed;

  void exchange(std::span<const Transfer> outgoing, std::span<const Transfer> incoming) const {
    exchanges.push_back({{outgoing.begin(), outgoing.end()}, {incoming.begin(), incoming.end()}});
  }
  void sum(std::span<const TensorView> parts, const TensorView& sum) const {
    EXPECT_EQ(parts.front().data, sum.data);
    for (const TensorView& part : parts) EXPECT_EQ(part.elements(), sum.elements());
    summed.push_back(sum.elements());
  }
};

struct RecordedSum {
  RecordedSum(int ranks, std::int64_t elements, std::int64_t scratch_elements)
      : exchanges(static_cast<std::size_t>(ranks)),
        summed(exchanges.size()),
        tensor(static_cast<std::size_t>(elements)),
        scratch(static_cast<std::size_t>(scratch_elements)) {
    const TensorView whole{tensor.data(), Shape{elements}, DType::kF32};
    const TensorView memory{scratch.data(), Shape{scratch_elements}, DType::kF32};
    for (int r = 0; r < ranks; ++r) {
      const auto rank = static_cast<std::size_t>(r);
      TreeSum(r, ranks, memory).submit(whole, RecordingLink{exchanges[rank], summed[rank]});
    }
  }

  bool in_scratch(const Transfer& transfer) const {
    return transfer.data >= scratch.data() && transfer.data + transfer.elements <= scratch.data() + scratch.size();
  }
  bool in_tensor(const Transfer& transfer) const {
    return transfer.data >= tensor.data() && transfer.data + transfer.elements <= tensor.data() + tensor.size();
  }

  std::vector<std::vector<RecordedExchange>> exchanges;  // of each rank
  std::vector<std::vector<std::int64_t>> summed;
  std::vector<float> tensor, scratch;
};

template <typename Check>
void for_each_sum(const Check& check) {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    for (const std::int64_t elements : {1, 2, 15, 16, 17, 100, 1000, 20'003}) {
      for (const std::int64_t scratch : {16 * 9, 1000, 65'536}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(elements) + " elements, scratch of " +
                     std::to_string(scratch));
        check(RecordedSum(ranks, elements, scratch));
      }
    }
  }
}

TEST(TreeSum, WhatOneSendsTheOtherAwaits) {
  for_each_sum([](const RecordedSum& sum) {
    const auto find = [](const std::vector<Transfer>& transfers, std::size_t peer) {
      return std::ranges::find(transfers, static_cast<int>(peer), &Transfer::peer);
    };
    for (std::size_t from = 0; from < sum.exchanges.size(); ++from) {
      ASSERT_EQ(sum.exchanges[from].size(), sum.exchanges[0].size());
      for (std::size_t i = 0; i < sum.exchanges[from].size(); ++i) {
        for (std::size_t to = 0; to < sum.exchanges.size(); ++to) {
          const std::vector<Transfer>&sent = sum.exchanges[from][i].outgoing,
                &awaited = sum.exchanges[to][i].incoming;
          const auto out = find(sent, to), in = find(awaited, from);
          ASSERT_EQ(out == sent.end(), in == awaited.end()) << from << " to " << to;
          if (out == sent.end()) continue;
          ASSERT_EQ(out->elements, in->elements) << from << " to " << to;
          ASSERT_GT(out->elements, 0);
        }
      }
    }
  });
}

TEST(TreeSum, EveryElementIsSummedOnceAndComesBackToAll) {
  for_each_sum([](const RecordedSum& sum) {
    std::int64_t summed = 0;
    for (const auto& counts : sum.summed) {
      for (const std::int64_t count : counts) summed += count;
    }
    ASSERT_EQ(summed, static_cast<std::int64_t>(sum.tensor.size()));
    for (const auto& exchanges : sum.exchanges) {
      std::int64_t returned = 0;
      for (std::size_t i = 1; i < exchanges.size(); i += 2) {
        for (const Transfer& in : exchanges[i].incoming) {
          ASSERT_EQ(in.data, sum.tensor.data() + returned);
          returned += in.elements;
        }
      }
      ASSERT_EQ(returned, summed);
    }
  });
}

TEST(TreeSum, PartsLieInTheScratchMemoryOneAfterAnother) {
  for_each_sum([](const RecordedSum& sum) {
    for (const auto& exchanges : sum.exchanges) {
      for (std::size_t i = 0; i < exchanges.size(); i += 2) {
        for (const Transfer& out : exchanges[i].outgoing) ASSERT_TRUE(sum.in_tensor(out));
        const float* free = sum.scratch.data();
        for (const Transfer& in : exchanges[i].incoming) {
          ASSERT_TRUE(sum.in_scratch(in));
          ASSERT_EQ(in.data, free);
          free += in.elements;
        }
        for (const Transfer& out : exchanges[i + 1].outgoing) ASSERT_EQ(out.data, sum.scratch.data());
      }
    }
  });
}

TEST(TreeSum, SendsTheBytesOfARing) {
  constexpr std::int64_t kElements = 16 * 9 * 8 * 7 * 5;
  for (int ranks = 2; ranks <= 9; ++ranks) {
    const RecordedSum sum(ranks, kElements, kElements);
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t sent = 0;
      for (const RecordedExchange& exchange : sum.exchanges[static_cast<std::size_t>(rank)]) {
        for (const Transfer& out : exchange.outgoing) sent += out.peer == rank ? 0 : out.elements;
      }
      EXPECT_EQ(sent, 2 * kElements / ranks * (ranks - 1)) << rank << " of " << ranks;
    }
  }
}

TEST(TreeSum, OneRankSendsNothing) { EXPECT_TRUE(RecordedSum(1, 100, 100).exchanges[0].empty()); }

}  // namespace
}  // namespace headrace::cuda
