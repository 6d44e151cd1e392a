// What every Collective must do whose sums are the tree's, Collective::in_order() of several GPUs with it.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/collective.h"
#include "headrace/tests/conformance/replicas.h"

namespace headrace::test {

// A target has devices for groups of up to max_replicas(), and create()s the collective of one.
template <typename Target>
class CollectiveSumsSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Target::absent(); !why.empty()) GTEST_SKIP() << why;
  }

  static int up_to(int replicas) { return std::min(replicas, Target::max_replicas()); }
  static Replicas group(int replicas, std::size_t count) {
    return Replicas(Target::open(replicas), count, &Target::create);
  }
};
TYPED_TEST_SUITE_P(CollectiveSumsSuite);

TYPED_TEST_P(CollectiveSumsSuite, SumsAreTheTreesSumsOnEveryReplica) {
  for (int size = 1; size <= this->up_to(8); ++size) {
    for (const std::size_t count : {1, 2, 15, 16, 17, 127, 1023, 1025, 8195, 100'003}) {
      Replicas replicas = this->group(size, count);
      replicas.randomize(count);
      replicas.upload();
      replicas.all_reduce();
      const std::vector<float> wanted = replicas.tree_sums();
      for (int r = 0; r < size; ++r) {
        ASSERT_EQ(replicas.download(r), wanted)
            << "replica " << r << " of " << size << ", " << count << " elements";
      }
    }
  }
}

TYPED_TEST_P(CollectiveSumsSuite, ViewsMayBeginAnywhere) {
  const int size = this->up_to(3);
  Replicas replicas = this->group(size, 1000);
  replicas.randomize(1);
  replicas.upload();
  replicas.each([](Replicas& all, int r) {
    TensorView part = all.view(r);
    part.data = part.as<float>() + 3;
    part.shape = {500};
    all.collective().all_reduce_sum(r, part, all.stream(r));
  });
  for (int r = 0; r < size; ++r) {
    std::vector<float> wanted = replicas.values(r);
    for (std::size_t i = 3; i < 503; ++i) wanted[i] = replicas.tree_sum(i);
    EXPECT_EQ(replicas.download(r), wanted) << r;
  }
}

TYPED_TEST_P(CollectiveSumsSuite, BroadcastCopiesTheRootsBits) {
  const int size = this->up_to(3);
  for (int root = 0; root < size; ++root) {
    Replicas replicas = this->group(size, 1001);
    replicas.randomize(5);
    replicas.upload();
    replicas.each(
        [root](Replicas& all, int r) { all.collective().broadcast(r, root, all.view(r), all.stream(r)); });
    for (int r = 0; r < size; ++r) {
      EXPECT_EQ(replicas.download(r), replicas.values(root)) << r << " from " << root;
    }
  }
}

TYPED_TEST_P(CollectiveSumsSuite, CapturedCallsRunAtEveryLaunch) {
  const int size = this->up_to(4);
  Replicas replicas = this->group(size, 777);
  std::vector<std::unique_ptr<CapturedWork>> work;
  replicas.each([&](Replicas& all, int r) {
    all.stream(r).begin_capture();
    all.collective().all_reduce_sum(r, all.view(r), all.stream(r));
    all.collective().broadcast(r, all.size() - 1, all.view(r), all.stream(r));
    work.push_back(all.stream(r).end_capture());
  });
  for (std::uint64_t launch = 0; launch < 3; ++launch) {
    replicas.randomize(launch);
    replicas.upload();
    replicas.each([&](Replicas& all, int r) { all.stream(r).launch(*work[static_cast<std::size_t>(r)]); });
    for (int r = 0; r < size; ++r) EXPECT_EQ(replicas.download(r), replicas.tree_sums()) << r;
  }
}

// Two sums on a stream of their own, the second of what the replica's stream wrote meanwhile.
class SumsBeside {
 public:
  SumsBeside(Replicas& replicas, const std::function<void()>& before) {
    const std::int64_t half = replicas.view(0).elements() / 2;
    replicas.each([&](Replicas& all, int r) {
      streams_.push_back(all.device(r).create_stream());
      const TensorView first{all.view(r).data, {half}, DType::kF32};
      const TensorView second{first.as<float>() + half, {half}, DType::kF32};
      all.stream(r).begin_capture();
      if (r == 1) all.stream(r).call(before);
      sum(all, r, first);
      all.stream(r).fill(second.data, 0, second.bytes());
      sum(all, r, second);
      all.stream(r).follow(*streams_.back());
      work_.push_back(all.stream(r).end_capture());
    });
  }

  void launch(Replicas& replicas) {
    replicas.each([&](Replicas& all, int r) { all.stream(r).launch(*work_[static_cast<std::size_t>(r)]); });
  }

 private:
  void sum(Replicas& all, int replica, const TensorView& tensor) {
    streams_.back()->follow(all.stream(replica));
    all.collective().all_reduce_sum(replica, tensor, *streams_.back());
  }

  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<CapturedWork>> work_;
};

TYPED_TEST_P(CollectiveSumsSuite, CapturedCallsMayRunBesideTheReplicasStreams) {
  for (int size = 2; size <= this->up_to(4); ++size) {
    Replicas replicas = this->group(size, 2000);
    SumsBeside work(replicas, [] {});
    for (std::uint64_t launch = 0; launch < 5; ++launch) {
      replicas.randomize(launch);
      replicas.upload();
      work.launch(replicas);
      std::vector<float> wanted = replicas.tree_sums();
      std::fill(wanted.begin() + 1000, wanted.end(), 0.0F);
      for (int r = 0; r < size; ++r) ASSERT_EQ(replicas.download(r), wanted) << r << " of " << size;
    }
  }
}

TYPED_TEST_P(CollectiveSumsSuite, AbortReleasesThoseWhoWaitAndThoseWhoCome) {
  const int last = this->up_to(3) - 1;
  Replicas replicas = this->group(last + 1, 10);
  replicas.randomize(0);
  replicas.upload();
  for (int r = 0; r < last; ++r) replicas.collective().all_reduce_sum(r, replicas.view(r), replicas.stream(r));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  replicas.collective().abort("the last replica caught fire");
  for (int r = 0; r < last; ++r) {
    const auto [code, message] = error_of(replicas.stream(r));
    EXPECT_EQ(code, ErrorCode::kCancelled);
    EXPECT_THAT(message, ::testing::HasSubstr("the last replica caught fire"));
  }
  replicas.collective().abort("later reasons do not count");
  replicas.collective().all_reduce_sum(last, replicas.view(last), replicas.stream(last));
  const auto [code, message] = error_of(replicas.stream(last));
  EXPECT_EQ(code, ErrorCode::kCancelled);
  EXPECT_THAT(message, ::testing::HasSubstr("the last replica caught fire"));
}

REGISTER_TYPED_TEST_SUITE_P(CollectiveSumsSuite, SumsAreTheTreesSumsOnEveryReplica, ViewsMayBeginAnywhere,
                            BroadcastCopiesTheRootsBits, CapturedCallsRunAtEveryLaunch,
                            CapturedCallsMayRunBesideTheReplicasStreams, AbortReleasesThoseWhoWaitAndThoseWhoCome);

// What a Collective must do beside its sums: failures, refusals, many rounds.

template <typename Target>
class CollectiveSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Target::absent(); !why.empty()) GTEST_SKIP() << why;
  }
};
TYPED_TEST_SUITE_P(CollectiveSuite);

TYPED_TEST_P(CollectiveSuite, AReplicaThatFailsBesideItsSumsDoesNotHoldUpTheOthers) {
  for (const bool within : {true, false}) {
    Replicas replicas(TypeParam::open(3), 100);
    SumsBeside work(replicas, [within] {
      if (within) throw std::runtime_error("no more");
    });
    if (!within) replicas.stream(1).call([] { throw std::runtime_error("no more"); });
    work.launch(replicas);
    for (const int r : {0, 2}) EXPECT_EQ(error_of(replicas.stream(r)).first, ErrorCode::kCancelled) << r;
    EXPECT_EQ(error_of(replicas.stream(1)).second, "no more");
  }
}

TYPED_TEST_P(CollectiveSuite, AReplicaThatFailedBeforeDoesNotHoldUpTheOthers) {
  Replicas replicas(TypeParam::open(3), 10);
  replicas.stream(1).call([] { throw std::runtime_error("no more"); });
  replicas.all_reduce();
  for (const int r : {0, 2}) {
    const auto [code, message] = error_of(replicas.stream(r));
    EXPECT_EQ(code, ErrorCode::kCancelled) << r;
    EXPECT_THAT(message, ::testing::HasSubstr(replicas.device(1).info().name + " failed")) << r;
  }
  EXPECT_EQ(error_of(replicas.stream(1)).second, "no more");
}

TYPED_TEST_P(CollectiveSuite, ReplicasThatDisagreeAllGetAnError) {
  Replicas replicas(TypeParam::open(2), 10);
  TensorView shorter = replicas.view(1);
  shorter.shape = {9};
  replicas.collective().all_reduce_sum(0, replicas.view(0), replicas.stream(0));
  replicas.collective().all_reduce_sum(1, shorter, replicas.stream(1));
  for (int r = 0; r < 2; ++r) EXPECT_EQ(error_of(replicas.stream(r)).first, ErrorCode::kInvalidArgument) << r;
  replicas.collective().all_reduce_sum(0, replicas.view(0), replicas.stream(0));
  replicas.collective().broadcast(1, 0, replicas.view(1), replicas.stream(1));
  for (int r = 0; r < 2; ++r) EXPECT_EQ(error_of(replicas.stream(r)).first, ErrorCode::kInvalidArgument) << r;
  replicas.upload();
  replicas.all_reduce();
  for (int r = 0; r < 2; ++r) EXPECT_EQ(error_of(replicas.stream(r)).second, "") << "after the report all is well";
}

TYPED_TEST_P(CollectiveSuite, WhatCannotBeIsRefusedAtOnce) {
  Replicas replicas(TypeParam::open(2), 10);
  TensorView integers = replicas.view(0);
  integers.dtype = DType::kI32;
  EXPECT_THROW(replicas.collective().all_reduce_sum(0, integers, replicas.stream(0)), ConfigError);
  EXPECT_THROW(replicas.collective().all_reduce_sum(0, replicas.view(0), replicas.stream(1)), ConfigError);
  EXPECT_THROW(replicas.collective().broadcast(0, 2, replicas.view(0), replicas.stream(0)), ConfigError);
}

TYPED_TEST_P(CollectiveSuite, TwoGroupsOverTheSameDevicesDoNotMeet) {
  Replicas gradients(TypeParam::open(2), 5000);
  Replicas metrics(TypeParam::open(2), 3);
  gradients.randomize(1);
  metrics.randomize(2);
  gradients.upload();
  metrics.upload();
  gradients.collective().all_reduce_sum(0, gradients.view(0), gradients.stream(0));
  metrics.all_reduce();
  EXPECT_EQ(metrics.download(1), metrics.tree_sums());
  gradients.collective().all_reduce_sum(1, gradients.view(1), gradients.stream(1));
  EXPECT_EQ(gradients.download(0), gradients.tree_sums());
}

TYPED_TEST_P(CollectiveSuite, TenThousandRoundsStayExact) {
  Replicas replicas(TypeParam::open(2), 40);
  for (int r = 0; r < 2; ++r) replicas.values(r).assign(40, 1.0F);
  replicas.upload();
  for (int round = 1; round <= 10'000; ++round) {
    replicas.all_reduce();
    if (round % 100 != 0) continue;  // doubled a hundred times: start again from one
    for (int r = 0; r < 2; ++r) ASSERT_EQ(replicas.download(r), std::vector<float>(40, 0x1p100F)) << round;
    replicas.upload();
  }
}

TYPED_TEST_P(CollectiveSuite, MoreReplicasThanCoresGetThere) {
  Replicas replicas(TypeParam::open(8), 300);
  for (std::uint64_t round = 0; round < 300; ++round) {
    replicas.randomize(round);
    replicas.upload();
    replicas.all_reduce();
    const auto wanted = replicas.tree_sums();
    for (int r = 0; r < 8; ++r) ASSERT_EQ(replicas.download(r), wanted) << round;
  }
}

REGISTER_TYPED_TEST_SUITE_P(CollectiveSuite, AReplicaThatFailsBesideItsSumsDoesNotHoldUpTheOthers,
                            AReplicaThatFailedBeforeDoesNotHoldUpTheOthers, ReplicasThatDisagreeAllGetAnError,
                            WhatCannotBeIsRefusedAtOnce, TwoGroupsOverTheSameDevicesDoNotMeet,
                            TenThousandRoundsStayExact, MoreReplicasThanCoresGetThere);

}  // namespace headrace::test
