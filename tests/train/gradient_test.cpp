// Every layer's gradient against central differences of the loss, through whole nets.
#include "headrace/tests/train/gradient_fixture.h"

namespace headrace::test {
namespace {

class GradientTest : public testing::TestWithParam<GradientCase> {};

TEST_P(GradientTest, EqualsTheDifferenceQuotient) { expect_gradients_equal_differences(GetParam()); }

Node head(Graph& g, Node x) { return g.dense(x, 3, {.name = "head"}); }

const Shape kImage{4, 4, 2};

const GradientCase kCases[] = {
    {"dense", [](Graph& g) { return head(g, g.dense(g.input("image", {5}), 4)); }, {5}},
    {"dense_on_three_axes", [](Graph& g) { return head(g, g.flatten(g.dense(g.input("image", kImage), 3))); },
     kImage},
    {"dense_relu",
     [](Graph& g) { return head(g, g.dense(g.input("image", {5}), 6, {.activation = Activation::kRelu})); },
     {5}},
    {"dense_gelu",
     [](Graph& g) { return head(g, g.dense(g.input("image", {5}), 6, {.activation = Activation::kGelu})); },
     {5}},
    {"dense_silu",
     [](Graph& g) { return head(g, g.dense(g.input("image", {5}), 6, {.activation = Activation::kSilu})); },
     {5}},
    {"no_bias_smoothing",
     [](Graph& g) {
       return g.dense(g.gelu(g.dense(g.input("image", {5}), 6, {.bias = false})), 3, {.bias = false});
     },
     {5},
     0.2F},
    {"dense_on_one_axis_of_two",
     [](Graph& g) {
       return head(g,
                   g.flatten(g.dense(g.dense(g.input("image", {4, 3}), 5, {.activation = Activation::kGelu}), 2)));
     },
     {4, 3}},
    {"softmax_inside",
     [](Graph& g) { return head(g, g.scale(g.softmax(g.dense(g.input("image", {5}), 4)), 3)); },
     {5}},
    {"softmax_of_pixels",
     [](Graph& g) { return head(g, g.flatten(g.softmax(g.conv(g.input("image", kImage), 3)))); }, kImage},
    {"add_of_four",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 6);
       return head(g, g.gelu(g.add({g.silu(x), x, g.gelu(x), g.dense(x, 6)})));
     },
     {5}},
    {"shared_three_times",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 5, {.activation = Activation::kGelu, .name = "shared"});
       return head(g, g.add(g.again(x, {g.again(x, {x})}), x));
     },
     {5}},
    {"shared_convolution_on_two_sizes",
     [](Graph& g) {
       const Node image = g.input("image", kImage);
       const Node x = g.conv(image, 2, {.activation = Activation::kSilu});
       const Node y = g.again(x, {g.max_pool(x, 2)});
       return g.add(head(g, g.flatten(y)), g.dense(g.flatten(x), 3));
     },
     kImage},
    {"shared_batch_norm",
     [](Graph& g) {
       const Node x = g.batch_norm(g.dense(g.input("image", {5}), 4, {.bias = false}));
       return head(g, g.add(g.again(x, {g.gelu(x)}), x));
     },
     {5}},
    {"two_results",
     [](Graph& g) -> Results {
       const Node x = g.dense(g.input("image", {5}), 6, {.activation = Activation::kGelu});
       return {head(g, x), g.dense(x, 3, {.name = "second"})};
     },
     {5},
     0.1F,
     1,
     {"head", "second"}},
    {"a_result_within",
     [](Graph& g) -> Results {
       const Node x = g.dense(g.input("image", {5}), 3, {.name = "inner"});
       return {head(g, g.gelu(x)), x};
     },
     {5},
     0,
     1,
     {"head", "inner"}},
    {"two_losses_of_one_result",
     [](Graph& g) -> Results {
       const Node x = g.dense(g.input("image", {5}), 3, {.name = "inner"});
       return {x, g.softmax(x)};
     },
     {5},
     0,
     1,
     {"inner", "inner"}},
    {"sigmoid_and_tanh",
     [](Graph& g) { return head(g, g.sigmoid(g.dense(g.tanh(g.dense(g.input("image", {5}), 4)), 5))); },
     {5}},
    {"leaky_relu_elu_softplus",
     [](Graph& g) {
       Node x = g.dense(g.input("image", {5}), 4, {.activation = Activation::kLeakyRelu});
       x = g.dense(x, 4, {.activation = Activation::kElu});
       return head(g, g.dense(x, 5, {.activation = Activation::kSoftplus}));
     },
     {5}},
    {"activations_as_options",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 2, {.activation = Activation::kSigmoid});
       x = g.dense(g.flatten(x), 4, {.activation = Activation::kTanh});
       return head(g, g.scale(g.dense(x, 5, {.activation = Activation::kSoftmax}), 5));
     },
     kImage},
    {"layer_norm",
     [](Graph& g) {
       const Node x = g.layer_norm(g.dense(g.input("image", {4, 3}), 5), {.epsilon = 1e-2F});
       return head(g, g.flatten(g.layer_norm(g.gelu(x), {.epsilon = 1e-2F, .scale = false, .center = false})));
     },
     {4, 3}},
    {"layer_norm_first",
     [](Graph& g) { return head(g, g.layer_norm(g.input("image", {5}), {.center = false})); },
     {5}},
    {"embedding",
     [](Graph& g) {
       const Node x = g.embedding(g.input("label", Shape{}), 3, 4);
       return head(g, g.gelu(g.concat({x, g.dense(g.input("image", {5}), 3)})));
     },
     {5}},
    {"attention",
     [](Graph& g) {
       const Node x = g.input("image", {4, 3});
       const Node q = g.dense(x, 6), k = g.dense(g.gelu(g.dense(x, 5)), 6, {.bias = false}), v = g.dense(x, 4);
       return head(g, g.flatten(g.attention({.query = q, .value = v, .key = k}, 2)));
     },
     {4, 3}},
    {"attention_to_itself",
     [](Graph& g) {
       const Node x = g.scale(g.dense(g.input("image", {4, 3}), 4), 3);
       return head(g, g.global_average_pool(g.gelu(g.attention({.query = x, .value = x}, 2, {.causal = true}))));
     },
     {4, 3}},
    {"attention_to_another_sequence",
     [](Graph& g) {
       const Node x = g.input("image", {4, 3});
       const Node y = g.embedding(g.input("label", Shape{}), 3, 12);
       const Node few = g.concat({g.gelu(g.dense(x, 2)), x});
       return head(
           g, g.concat({y, g.flatten(g.multi_head_attention({.query = g.dense(x, 3), .value = few}, 3, 2,
                                                            {.value_dim = 3, .output_dim = 4, .bias = false}))}));
     },
     {4, 3}},
    {"attention_with_dropout_and_mask",
     [](Graph& g) {
       const Node x = g.input("image", {3, 3}), mask = g.relu(g.global_average_pool(x));
       const Node y = g.scale(g.dense(x, 4), 2);
       return head(g, g.flatten(g.multi_head_attention({.query = y, .value = y, .mask = mask}, 2, 2,
                                                       {.dropout = 0.3F, .bias = false})));
     },
     {3, 3}},
    {"position_embedding",
     [](Graph& g) {
       const Node x = g.position_embedding(g.position_embedding(g.dense(g.input("image", {4, 3}), 5)));
       return head(g, g.global_average_pool(g.gelu(x)));
     },
     {4, 3}},
    {"average_pool",
     [](Graph& g) { return head(g, g.flatten(g.average_pool(g.conv(g.input("image", kImage), 3), 2))); }, kImage},
    {"average_pool_overlapping",
     [](Graph& g) {
       return head(g, g.flatten(g.average_pool(g.conv(g.input("image", kImage), 3), 3, {.stride = 1})));
     },
     kImage},
    {"concat",
     [](Graph& g) {
       const Node x = g.conv(g.input("image", kImage), 3);
       return head(g, g.flatten(g.concat({g.gelu(x), g.input("image", kImage), g.conv(x, 2), x})));
     },
     kImage},
    {"synchronised_batch_norm",
     [](Graph& g) {
       const Node x = g.batch_norm(g.conv(g.input("image", kImage), 3), {.synchronised = true});
       return head(g, g.flatten(g.batch_norm(g.gelu(x), {.scale = false, .synchronised = true})));
     },
     kImage, 0, 3},
    {"conv", [](Graph& g) { return head(g, g.flatten(g.conv(g.conv(g.input("image", kImage), 3), 2))); }, kImage},
    {"conv_strided_valid",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.kernel = 2, .padding = ConvPadding::kValid});
       return head(g, g.flatten(g.conv(x, 2, {.kernel = 3, .stride = 2, .bias = false})));
     },
     kImage},
    {"conv_even_kernel_relu",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.kernel = 2, .activation = Activation::kRelu});
       return head(g, g.flatten(x));
     },
     kImage},
    {"batch_norm",
     [](Graph& g) {
       Node x = g.batch_norm(g.conv(g.input("image", kImage), 3));
       return head(g, g.flatten(g.gelu(x)));
     },
     kImage},
    {"batch_norm_first_without_scale",
     [](Graph& g) { return head(g, g.flatten(g.batch_norm(g.input("image", kImage), {.scale = false}))); },
     kImage},
    {"max_pool", [](Graph& g) { return head(g, g.flatten(g.max_pool(g.conv(g.input("image", kImage), 3), 2))); },
     kImage},
    {"max_pool_overlapping",
     [](Graph& g) {
       return head(g, g.flatten(g.max_pool(g.conv(g.input("image", kImage), 3), 3, {.stride = 1})));
     },
     kImage},
    {"conv_with_frozen_weights",
     [](Graph& g) {
       Node x = g.conv(g.conv(g.input("image", kImage), 3), 3, {.trained_weights = false});
       return head(g, g.flatten(g.conv(g.gelu(x), 2, {.bias = false, .trained_weights = false})));
     },
     kImage},
    {"conv_transpose",
     [](Graph& g) {
       const Node x = g.conv_transpose(g.input("image", kImage), 3, {.stride = 2});
       return head(g, g.flatten(g.conv(x, 2, {.stride = 3})));
     },
     kImage},
    {"conv_transpose_twice",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.stride = 2});
       x = g.conv_transpose(x, 2, {.kernel = 3, .stride = 2, .padding = ConvPadding::kEven, .bias = false});
       x = g.conv_transpose(g.silu(x), 2, {.kernel = 2, .padding = ConvPadding::kValid});
       return head(g, g.flatten(g.conv_transpose(x, 1, {.kernel = 2, .activation = Activation::kSilu})));
     },
     kImage},
    {"conv_transpose_with_frozen_weights",
     [](Graph& g) {
       const Node x = g.conv_transpose(g.conv(g.input("image", kImage), 2, {.stride = 2}), 2,
                                       {.kernel = 1, .stride = 2, .trained_weights = false});
       return head(g, g.flatten(g.gelu(x)));
     },
     kImage},
    {"depthwise_conv",
     [](Graph& g) {
       const Node x = g.depthwise_conv(g.conv(g.input("image", kImage), 4), {.activation = Activation::kGelu});
       return head(g, g.flatten(g.depthwise_conv(x, {.kernel = 2, .stride = 2, .bias = false})));
     },
     kImage},
    {"depthwise_conv_multiplied",
     [](Graph& g) {
       Node x = g.depthwise_conv(g.input("image", kImage),
                                 {.kernel = 2, .padding = ConvPadding::kValid, .multiplier = 3});
       x = g.depthwise_conv(x, {.stride = 2, .padding = ConvPadding::kEven, .multiplier = 2});
       return head(g, g.flatten(x));
     },
     kImage},
    {"depthwise_conv_with_frozen_weights",
     [](Graph& g) {
       const Node x = g.depthwise_conv(g.conv(g.input("image", kImage), 3), {.trained_weights = false});
       return head(g, g.flatten(x));
     },
     kImage},
    {"conv_dilated",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.dilation = 2, .activation = Activation::kSilu});
       x = g.conv(x, 2, {.stride = 2, .dilation = 2, .padding = ConvPadding::kEven});
       return head(g, g.flatten(g.conv(x, 2, {.kernel = 2, .padding = ConvPadding::kPixels, .pixels = 1})));
     },
     kImage},
    {"conv_transpose_dilated",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.stride = 2});
       x = g.conv_transpose(x, 2, {.kernel = 2, .stride = 2, .dilation = 2, .output_padding = 1});
       return head(g,
                   g.flatten(g.conv_transpose(
                       x, 1, {.stride = 2, .padding = ConvPadding::kPixels, .pixels = 1, .output_padding = 0})));
     },
     kImage},
    {"depthwise_conv_dilated",
     [](Graph& g) {
       const Node x = g.depthwise_conv(g.input("image", kImage), {.dilation = 2, .multiplier = 2});
       return head(g, g.flatten(g.depthwise_conv(
                          g.gelu(x), {.kernel = 2, .stride = 2, .dilation = 3, .padding = ConvPadding::kSame})));
     },
     kImage},
    {"conv_rectangular",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.kernel = {1, 3}, .activation = Activation::kGelu});
       x = g.conv(x, 2, {.kernel = {3, 2}, .stride = {2, 1}, .dilation = {1, 2}});
       return head(g, g.flatten(g.conv(x, 2, {.padding = ConvPadding::kPixels, .pixels = {1, 0}})));
     },
     kImage},
    {"conv_of_groups",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 4, {.groups = 2, .activation = Activation::kSilu});
       x = g.conv(x, 6, {.stride = 2, .groups = 2, .bias = false});
       return head(g, g.flatten(g.conv(x, 6, {.kernel = 2, .groups = 6})));
     },
     kImage},
    {"conv_transpose_of_groups",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 4, {.stride = {2, 3}});
       x = g.conv_transpose(x, 6, {.kernel = {3, 2}, .stride = {2, 1}, .groups = 2});
       return head(g, g.flatten(g.conv_transpose(x, 3,
                                                 {.kernel = {1, 3},
                                                  .stride = {1, 2},
                                                  .padding = ConvPadding::kPixels,
                                                  .pixels = {0, 1},
                                                  .output_padding = HeightWidth(0, 1),
                                                  .groups = 3})));
     },
     kImage},
    {"depthwise_conv_rectangular",
     [](Graph& g) {
       const Node x = g.depthwise_conv(g.input("image", kImage), {.kernel = {1, 3}, .stride = {1, 2}});
       return head(
           g, g.flatten(g.depthwise_conv(g.gelu(x), {.kernel = {3, 2}, .dilation = {2, 1}, .multiplier = 2})));
     },
     kImage},
    {"scale",
     [](Graph& g) { return g.scale(head(g, g.scale(g.dense(g.input("image", {5}), 4), -3)), 0.5F); },
     {5}},
    {"global_average_pool",
     [](Graph& g) { return head(g, g.global_average_pool(g.silu(g.conv(g.input("image", kImage), 4)))); }, kImage},
    {"dropout", [](Graph& g) { return head(g, g.dropout(g.dense(g.input("image", {5}), 6), 0.4F)); }, {5}},
    {"dropout_two",
     [](Graph& g) {
       return head(g, g.dropout(g.dense(g.dropout(g.gelu(g.dense(g.input("image", {5}), 6)), 0.3F), 6), 0.4F));
     },
     {5}},
    {"add",
     [](Graph& g) {
       const Node x = g.gelu(g.dense(g.input("image", {5}), 6));
       return head(g, g.add(x, g.silu(g.dense(x, 6))));
     },
     {5}},
    {"add_branch_first",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 6);
       return head(g, g.add(g.dense(g.gelu(x), 6), x));
     },
     {5}},
    {"add_to_itself",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 6);
       return head(g, g.gelu(g.add(x, x)));
     },
     {5}},
    {"three_readers",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 6);
       const Node y = g.add(g.gelu(x), g.relu(x));
       return head(g, g.add(g.dropout(y, 0.3F), g.batch_norm(x)));
     },
     {5}},
    {"conv_strided_even",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.stride = 2, .padding = ConvPadding::kEven, .bias = false});
       return head(g, g.flatten(g.conv(x, 2, {.kernel = 1, .stride = 2, .padding = ConvPadding::kEven})));
     },
     kImage},
    // A block of a residual net that changes the shape, then one that does not; smooth, so that no step crosses a
    // kink.
    {"residual_blocks",
     [](Graph& g) {
       const auto conv = [&](Node x, int kernel, int stride) {
         return g.batch_norm(
             g.conv(x, 3, {.kernel = kernel, .stride = stride, .padding = ConvPadding::kEven, .bias = false}),
             {.epsilon = 1e-2F});
       };
       const Node x = g.input("image", kImage);
       const Node y = g.silu(g.add(conv(g.silu(conv(x, 3, 2)), 3, 1), conv(x, 1, 2)));
       return head(g, g.global_average_pool(g.silu(g.add(conv(g.silu(conv(y, 3, 1)), 3, 1), y))));
     },
     kImage},
    {"flatten_shared",
     [](Graph& g) {
       const Node x = g.conv(g.input("image", kImage), 2);
       return g.add(head(g, g.flatten(g.gelu(x))), g.dense(g.flatten(x), 3));
     },
     kImage},
};

INSTANTIATE_TEST_SUITE_P(Layers, GradientTest, testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace headrace::test
