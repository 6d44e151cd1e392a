// What NCCL does with one GPU alone: it comes up, sums, is captured and aborted. `Target` says how it is made:
//   static std::string absent();              // why it cannot be tested here; empty when it can
//   static DeviceGroup open();                // one GPU
//   static std::unique_ptr<Collective> create(DeviceGroup& devices);
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/collective.h"
#include "headrace/tests/conformance/replicas.h"

namespace headrace::test {

template <typename Target>
class NcclSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Target::absent(); !why.empty()) GTEST_SKIP() << why;
    group_.emplace(Target::open(), 5000, [](DeviceGroup& devices) { return Target::create(devices); });
    group_->randomize(1);
    group_->upload();
  }

  Replicas& group() { return *group_; }
  Stream& stream() { return group_->stream(0); }
  Collective& collective() { return group_->group(); }
  TensorView view() { return group_->view(0); }
  // Alone a replica's values are the sum.
  void expect_unchanged() { EXPECT_EQ(group_->download(0), group_->values(0)); }

 private:
  std::optional<Replicas> group_;
};
TYPED_TEST_SUITE_P(NcclSuite);

TYPED_TEST_P(NcclSuite, AloneAReplicasValuesAreTheSum) {
  EXPECT_EQ(this->collective().local_replicas(), 1);
  this->collective().all_reduce_sum(0, this->view(), this->stream());
  this->expect_unchanged();
  this->collective().broadcast(0, 0, this->view(), this->stream());
  this->expect_unchanged();
  this->collective().in_order().all_reduce_sum(0, this->view(), this->stream());
  this->expect_unchanged();
}

TYPED_TEST_P(NcclSuite, CallsAreCaptured) {
  const Buffer doubled = this->stream().allocate(this->view().bytes());
  this->stream().begin_capture();
  this->collective().all_reduce_sum(0, this->view(), this->stream());
  this->stream().copy(doubled.data(), this->view().data, doubled.size());
  const std::unique_ptr<CapturedWork> work = this->stream().end_capture();
  for (int launch = 0; launch < 3; ++launch) {
    this->group().randomize(static_cast<std::uint64_t>(launch));
    this->group().upload();
    this->stream().launch(*work);
    this->expect_unchanged();
    std::vector<float> copied(this->group().values(0).size());
    this->stream().copy(copied.data(), doubled.data(), doubled.size());
    this->stream().synchronize();
    EXPECT_EQ(copied, this->group().values(0)) << "in the stream's order";
  }
}

TYPED_TEST_P(NcclSuite, AnAbortedGroupSaysSoAndDoesNothing) {
  this->collective().all_reduce_sum(0, this->view(), this->stream());
  this->collective().abort("a replica is lost");
  this->collective().abort("another one, too");
  this->collective().all_reduce_sum(0, this->view(), this->stream());
  const auto [code, message] = error_of(this->stream());
  EXPECT_EQ(code, ErrorCode::kCancelled);
  EXPECT_THAT(message, ::testing::HasSubstr("a replica is lost"));
  EXPECT_EQ(error_of(this->stream()).second, "") << "it is said once";
  this->expect_unchanged();
}

TYPED_TEST_P(NcclSuite, AfterAnAbortedGroupAnotherWorks) {
  this->collective().abort("no more");
  DeviceGroup devices = TypeParam::open();
  const std::unique_ptr<Collective> other = TypeParam::create(devices);
  const std::unique_ptr<Stream> stream = devices[0].create_stream();
  const Buffer values = devices[0].allocate(64);
  stream->fill(values.data(), 0, 64);
  other->all_reduce_sum(0, values.view({16}, DType::kF32), *stream);
  stream->synchronize();
}

TYPED_TEST_P(NcclSuite, WhatCannotBeIsRefusedAtOnce) {
  TensorView integers = this->view();
  integers.dtype = DType::kI32;
  EXPECT_THROW(this->collective().all_reduce_sum(0, integers, this->stream()), ConfigError);
  EXPECT_THROW(this->collective().broadcast(0, 1, this->view(), this->stream()), ConfigError);
  DeviceGroup others = TypeParam::open();
  const std::unique_ptr<Stream> other = others[0].create_stream();
  EXPECT_THROW(this->collective().all_reduce_sum(0, this->view(), *other), ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(NcclSuite, AloneAReplicasValuesAreTheSum, CallsAreCaptured,
                            AnAbortedGroupSaysSoAndDoesNothing, AfterAnAbortedGroupAnotherWorks,
                            WhatCannotBeIsRefusedAtOnce);

}  // namespace headrace::test
