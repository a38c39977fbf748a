//===- HostRows.cpp - The kernels of row pools on the host ----------------===//

#include "HostRows.h"

#include "FakeCuda.h"

#include <algorithm>

namespace sinkstate::test {
namespace {

template <typename T> T value(void *const *parameters, int index) {
  return *static_cast<const T *>(parameters[index]);
}

} // namespace

void provide(ss::RowPool &pool, int32_t threads, bool backwards) {
  ss::Provision p;
  auto each = [&](auto &&phase) {
    for (int32_t i = 0; i < threads; ++i)
      phase(pool, p, backwards ? threads - 1 - i : i, threads);
  };
  each(ss::load_provision);
  ss::begin_provision(pool, p);
  each(ss::clear_grants);
  each(ss::serve_partial);
  each(ss::serve_leaving);
  ss::want_chunks(pool, p);
  each(ss::serve_fresh);
  each(ss::count_grants);
  ss::end_provision(pool, p);
}

void hostPlanRows(void *, void *const *parameters, unsigned blocks) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const auto first = value<int32_t>(parameters, 1);
  const auto ahead = value<int32_t>(parameters, 2);
  for (unsigned block = 0; block < blocks; ++block) {
    const int32_t index = first + int32_t(block);
    const ss::RowLayer &layer = tables.layers[index];
    *layer.work_count = *layer.dense_count = *layer.back_count = 0;
    *layer.asked_count = 0;
    if (tables.pools[layer.pool].squeezed)
      for (int32_t i = 0; i < *layer.last_count; ++i)
        ss::squeeze_state(tables, index, layer.last[i]);
    for (int32_t i = 0; i < *layer.due_count; ++i) {
      layer.last[i] = layer.due[i];
      ss::add_shared(&tables.pools[layer.pool].live,
                     ss::plan_state(tables, index, layer.due[i], ahead));
    }
    *layer.last_count = *layer.due_count;
  }
}

void hostForeseeRows(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  for (int32_t l = 0; l < tables.layer_count; ++l) {
    const ss::RowLayer &layer = tables.layers[l];
    tables.pools[layer.pool].foreseen = 1;
    for (int32_t slot = 0; slot < tables.slots; ++slot)
      ss::foresee_slot(tables, layer, slot, 0, 1, tables.pools[layer.pool].coming);
  }
}

void hostPlaceRows(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const auto index = value<int32_t>(parameters, 1);
  const auto *states = value<const int32_t *>(parameters, 2);
  const auto *rows = value<const int32_t *>(parameters, 3);
  for (int32_t i = 0; i < value<int32_t>(parameters, 4); ++i)
    ss::place_state(tables, index, states[i], rows[i]);
}

void hostProvideRows(void *, void *const *parameters, unsigned blocks) {
  auto *pools = value<ss::RowPool *>(parameters, 0);
  for (unsigned block = 0; block < blocks; ++block)
    provide(pools[block], 3);
}

static void moveRequest(const ss::RowTables &tables, ss::RowRequest &request) {
  const ss::RowLayer &layer = tables.layers[request.layer];
  const ss::RowPool &pool = tables.pools[layer.pool];
  const int32_t block = ss::granted_block(pool, request);
  if (request.purpose == ss::kResize && block != ss::kNoBlock)
    ss::copy_state(layer, pool, layer.rank[request.state],
                   layer.row_base[request.state],
                   ss::block_base(pool, block, request.size_class), 0, 1);
  ss::finish_request(tables, request, block);
}

void hostMoveRows(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const ss::RowLayer &layer = tables.layers[value<int32_t>(parameters, 1)];
  for (int32_t i = 0; i < ss::requests_of(layer); ++i)
    if (ss::RowRequest *request =
            ss::request_at(layer, tables.pools[layer.pool], i))
      moveRequest(tables, *request);
}

void hostMoveAll(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const auto except = value<int32_t>(parameters, 1);
  for (int32_t p = 0; p < tables.pool_count; ++p)
    for (int32_t i = 0; i < tables.pools[p].grant_count; ++i)
      if (tables.pools[p].requests[i].layer != except)
        moveRequest(tables, tables.pools[p].requests[i]);
}

void hostCheckRange(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const ss::RowLayer &layer = tables.layers[value<int32_t>(parameters, 1)];
  ss::RowPool &pool = tables.pools[layer.pool];
  for (int32_t i = 0; i < *layer.dense_count; ++i) {
    const int32_t state = layer.dense_work[i];
    if (layer.rank[state] < 0)
      ss::note_range(tables, layer, state,
                     ss::largest_element(layer, pool, layer.row_base[state], 0, 1));
  }
  for (int32_t i = 0; i < ss::requests_of(layer); ++i) {
    const ss::RowRequest *request = ss::request_at(layer, pool, i);
    if (!ss::has_matrix(pool, request))
      continue;
    const int64_t row = ss::block_base(pool, ss::granted_block(pool, *request),
                                       request->size_class);
    if (!ss::is_in_range(ss::largest_element(layer, pool, row, 0, 1)))
      ss::reject_matrix(tables, pool, *request);
  }
}

void hostWidenBack(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const ss::RowLayer &layer = tables.layers[value<int32_t>(parameters, 1)];
  const int32_t count = ss::staged_count(layer);
  for (int32_t i = 0; i < count; ++i)
    ss::widen_matrix(layer, tables.pools[layer.pool], i, 0, 1);
  *layer.back_count = count;
}

void hostRoundBack(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const ss::RowLayer &layer = tables.layers[value<int32_t>(parameters, 1)];
  for (int32_t i = 0; i < ss::staged_count(layer); ++i)
    ss::round_factors(layer, tables.pools[layer.pool], i, 0, 1);
}

void hostSettleRows(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const auto layer = value<int32_t>(parameters, 1);
  for (int32_t p = 0; p < tables.pool_count; ++p)
    for (int32_t i = 0; i < tables.pools[p].grant_count; ++i)
      if (layer < 0 || tables.pools[p].requests[i].layer == layer)
        ss::settle_request(tables, tables.pools[p].requests[i]);
}

void hostCancelRows(void *, void *const *parameters, unsigned) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const auto layer = value<int32_t>(parameters, 1);
  const auto again = value<int32_t>(parameters, 2);
  for (int32_t l = 0; l < tables.layer_count; ++l)
    for (int32_t i = 0; (layer < 0 || l == layer) && i < *tables.layers[l].dense_count; ++i)
      ss::uncount_fold(tables, tables.layers[l], i, again);
  for (int32_t p = 0; p < tables.pool_count; ++p)
    for (int32_t i = 0; i < tables.pools[p].grant_count; ++i)
      if (layer < 0 || tables.pools[p].requests[i].layer == layer)
        ss::cancel_request(tables, tables.pools[p].requests[i], again);
}

void hostReleaseRows(void *, void *const *parameters, unsigned blocks) {
  const auto tables = value<ss::RowTables>(parameters, 0);
  const auto slot = value<int32_t>(parameters, 1);
  const auto owned = value<int32_t>(parameters, 2);
  for (unsigned block = 0; block < blocks; ++block) {
    const ss::RowLayer &layer = tables.layers[block];
    for (int32_t head = 0; head < layer.heads; ++head)
      ss::release_state(tables, layer, slot * layer.heads + head, owned);
  }
}

void addRowKernels() {
  const size_t tables = sizeof(ss::RowTables);
  const size_t plan[] = {tables, 4, 4}, one[] = {tables, 4}, pools[] = {8},
               cancel[] = {tables, 4, 4};
  const size_t place[] = {tables, 4, 8, 8, 4};
  fake_add_kernel("ss_plan_rows", plan, 3, hostPlanRows, nullptr);
  fake_add_kernel("ss_foresee_rows", plan, 1, hostForeseeRows, nullptr);
  fake_add_kernel("ss_place_rows", place, 5, hostPlaceRows, nullptr);
  fake_add_kernel("ss_provide_rows", pools, 1, hostProvideRows, nullptr);
  fake_add_kernel("ss_move_rows", one, 2, hostMoveRows, nullptr);
  fake_add_kernel("ss_move_all", one, 2, hostMoveAll, nullptr);
  fake_add_kernel("ss_check_range", one, 2, hostCheckRange, nullptr);
  fake_add_kernel("ss_widen_back", one, 2, hostWidenBack, nullptr);
  fake_add_kernel("ss_round_back", one, 2, hostRoundBack, nullptr);
  fake_add_kernel("ss_settle_rows", one, 2, hostSettleRows, nullptr);
  fake_add_kernel("ss_cancel_rows", cancel, 3, hostCancelRows, nullptr);
  fake_add_kernel("ss_release_rows", plan, 3, hostReleaseRows, nullptr);
}

} // namespace sinkstate::test
