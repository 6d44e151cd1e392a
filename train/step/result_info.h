// What a net's results are, from the layers that they come through and the losses that are of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/train/graph.h"
#include "headrace/train/losses.h"

namespace headrace {

// Returns the output named after this layer, the first one for an empty name. Throws ConfigError naming `who` if
// there is none.
std::size_t output_of(const Graph& graph, const std::string& who, const std::string& layer);

// Describes the result from which a loss or metric of one of the graph's outputs is computed, with its task.
// REQUIRES: the loss has no term for a layer that is no output.
ResultInfo result_info(const Graph& graph, const Loss& loss, std::size_t output);

// Returns by output whether training and evaluating leave out its softmax, because the loss takes its logits.
// Throws ConfigError if terms of one output differ in that.
std::vector<bool> leaves_out_softmax(const Graph& graph, const Loss& loss);

// Throws ConfigError if the loss does not fit the graph.
void check_loss(const Graph& graph, const Loss& loss);

}  // namespace headrace
