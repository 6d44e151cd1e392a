// What the suites of batch normalisation share.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"

namespace headrace::test {

template <typename Target>
class KernelsNormFixture : public KernelsFixture<Target> {
 protected:
  static constexpr float kEpsilon = 1e-3F, kMomentum = 0.9F;

  // The same figures at each call.
  Kernels::BatchNorm norm(std::int64_t channels, Activation activation = Activation::kNone) {
    auto variances = random_floats(channels, 11);
    for (float& value : variances) value = value + 1.5F;
    return {.gamma = this->random({channels}, 12),
            .beta = this->random({channels}, 13),
            .running_mean = this->random({channels}, 14),
            .running_var = this->tensor({channels}, variances),
            .saved_mean = this->result({channels}),
            .saved_inv_std = this->result({channels}),
            .epsilon = kEpsilon,
            .momentum = kMomentum,
            .activation = activation};
  }
};

}  // namespace headrace::test
