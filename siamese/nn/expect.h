// What a part asks of the tensors it is given: UsageError in one line that names the argument, what was expected and
// what came.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace siamese::nn {

// `shape`: -1 takes any size.
void expect_shape(const std::string& what, const at::Tensor& got, at::IntArrayRef shape);

// int64 of this shape with values from 0 to count - 1. The values of another device are not fetched to look at them.
void expect_indices(const std::string& what, const at::Tensor& got, at::IntArrayRef shape, int64_t count);

// A size, index or number that must hold a condition.
void expect_that(bool holds, const std::string& what, const std::string& expected, int64_t got);

}  // namespace siamese::nn
