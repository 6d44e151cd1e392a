// Everything the Kernels of a device must do. A backend instantiates it for its Target (kernels_fixture.h)
// in some lines, one a suite: see cpu_kernels_test.cpp. One that keeps activations in bf16 adds two.
#pragma once

#include "headrace/tests/conformance/kernels_batch_norm_suite.h"
#include "headrace/tests/conformance/kernels_conv_suite.h"
#include "headrace/tests/conformance/kernels_counts_suite.h"
#include "headrace/tests/conformance/kernels_dense_suite.h"
#include "headrace/tests/conformance/kernels_elementwise_suite.h"
#include "headrace/tests/conformance/kernels_half_products_suite.h"
#include "headrace/tests/conformance/kernels_half_suite.h"
#include "headrace/tests/conformance/kernels_joining_suite.h"
#include "headrace/tests/conformance/kernels_losses_suite.h"
#include "headrace/tests/conformance/kernels_pooling_suite.h"
#include "headrace/tests/conformance/kernels_sequences_suite.h"
#include "headrace/tests/conformance/kernels_training_suite.h"
#include "headrace/tests/conformance/kernels_update_suite.h"
