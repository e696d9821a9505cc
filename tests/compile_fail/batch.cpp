// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Values that a batch cannot keep a view of.
// expect-error TEMPORARY: a batch keeps a view of its values
// expect-error LIST: the values of a batch are contiguous
// expect-error TEXT: T is not an element type of a roundpipe tensor

#include <roundpipe/model/batch.hpp>

#include <list>
#include <string>
#include <utility>
#include <vector>

void set(roundpipe::Batch& batch) {
#if defined(TEMPORARY)
  batch.set("values", std::vector<float>(3));
#elif defined(LIST)
  std::list<float> const values(3);
  batch.set("values", values);
#elif defined(TEXT)
  std::string const values = "three";
  batch.set("values", values);
#else
  std::vector<float> values(3);
  batch.set("values", values).set("view", std::as_const(values));
#endif
}
