#pragma once

#include "headrace/devices/base/simd.h"
