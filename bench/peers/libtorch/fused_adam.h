// The optimizer of torch.optim.Adam(fused=True): libtorch's own class has no such form and is slower.
#pragma once

#include <torch/torch.h>

#include <vector>

class FusedAdam {
 public:
  FusedAdam(std::vector<torch::Tensor> parameters, double rate, double epsilon)
      : parameters_(std::move(parameters)), rate_(rate), epsilon_(epsilon) {
    for (const torch::Tensor& parameter : parameters_) {
      first_moments_.push_back(torch::zeros_like(parameter));
      second_moments_.push_back(torch::zeros_like(parameter));
      steps_.push_back(torch::zeros({}));
    }
  }

  void zero_grad() {
    for (torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
  }

  void step() {
    const torch::NoGradGuard no_gradients;
    std::vector<torch::Tensor> gradients;
    for (const torch::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    torch::_foreach_add_(steps_, 1);
    at::_fused_adam_(parameters_, gradients, first_moments_, second_moments_, {}, steps_, rate_, 0.9, 0.999, 0.0,
                     epsilon_, /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  std::vector<torch::Tensor> parameters_, first_moments_, second_moments_, steps_;
  double rate_, epsilon_;
};
