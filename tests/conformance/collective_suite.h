// What a Collective must do beside its sums (collective_sums_suite.h): failures, refusals, many rounds.
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/collective.h"
#include "headrace/tests/conformance/collective_sums_suite.h"
#include "headrace/tests/conformance/replicas.h"

namespace headrace::test {

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
