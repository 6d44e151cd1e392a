// The built-in kinds of layers.
#include "headrace/train/net/layers/activation_layer.h"
#include "headrace/train/net/layers/add_layer.h"
#include "headrace/train/net/layers/attention_layer.h"
#include "headrace/train/net/layers/average_pool_layer.h"
#include "headrace/train/net/layers/batch_norm_layer.h"
#include "headrace/train/net/layers/concat_layer.h"
#include "headrace/train/net/layers/conv_layer.h"
#include "headrace/train/net/layers/conv_transpose_layer.h"
#include "headrace/train/net/layers/dense_layer.h"
#include "headrace/train/net/layers/depthwise_conv_layer.h"
#include "headrace/train/net/layers/dropout_layer.h"
#include "headrace/train/net/layers/embedding_layer.h"
#include "headrace/train/net/layers/flatten_layer.h"
#include "headrace/train/net/layers/global_average_pool_layer.h"
#include "headrace/train/net/layers/layer.h"
#include "headrace/train/net/layers/layer_norm_layer.h"
#include "headrace/train/net/layers/max_pool_layer.h"
#include "headrace/train/net/layers/position_embedding_layer.h"
#include "headrace/train/net/layers/scale_layer.h"
#include "headrace/train/net/layers/softmax_layer.h"

namespace headrace {

const LayerMakers& built_in_layers() {
  static const LayerMakers makers{{"add", AddLayer::from},
                                  {"attention", AttentionLayer::from},
                                  {"average_pool", AveragePoolLayer::from},
                                  {"batch_norm", BatchNormLayer::from},
                                  {"concat", ConcatLayer::from},
                                  {"conv", ConvLayer::from},
                                  {"conv_transpose", ConvTransposeLayer::from},
                                  {"dense", DenseLayer::from},
                                  {"depthwise_conv", DepthwiseConvLayer::from},
                                  {"dropout", DropoutLayer::from},
                                  {"elu", ActivationLayer::from<Activation::kElu>},
                                  {"embedding", EmbeddingLayer::from},
                                  {"flatten", remake<FlattenLayer>},
                                  {"gelu", ActivationLayer::from<Activation::kGelu>},
                                  {"global_average_pool", remake<GlobalAveragePoolLayer>},
                                  {"layer_norm", LayerNormLayer::from},
                                  {"leaky_relu", ActivationLayer::from<Activation::kLeakyRelu>},
                                  {"max_pool", MaxPoolLayer::from},
                                  {"position_embedding", remake<PositionEmbeddingLayer>},
                                  {"relu", ActivationLayer::from<Activation::kRelu>},
                                  {"scale", ScaleLayer::from},
                                  {"sigmoid", ActivationLayer::from<Activation::kSigmoid>},
                                  {"silu", ActivationLayer::from<Activation::kSilu>},
                                  {"softmax", remake<SoftmaxLayer>},
                                  {"softplus", ActivationLayer::from<Activation::kSoftplus>},
                                  {"tanh", ActivationLayer::from<Activation::kTanh>}};
  return makers;
}

}  // namespace headrace
