// A model on two devices with data that it can learn, and what it says where it refuses something.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/model.h"

namespace headrace::test {

template <typename Thrown, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Thrown& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "no exception";
}

class ModelTest : public ::testing::Test {
 protected:
  Model make(const Net& net = small_mlp, const Optimizer& optimizer = adam(1e-2F)) {
    return compiled(training_.strategy, net, optimizer);
  }

  Training training_{2};
  Dataset data_ = blobs(400).shuffle().batch({.global_batch = 20});
  Dataset fresh_ = blobs(200, {8}, 4, 99).batch({.global_batch = 64});
};

}  // namespace headrace::test
