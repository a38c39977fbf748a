//===- TruncateLowering.cpp - merge and truncate of a compaction ----------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "CompactLowering.h"
#include "sinkstate/routines.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

/// Weights below this share of the largest are numerically zero.
static const double kZeroShare = std::ldexp(1.0, -22);

static Value isKept(KernelBuilder &k, Value weight, Value threshold) {
  return k.both(k.atLeast(weight, threshold), k.less(k.real(0), weight));
}

LogicalResult CompactLowering::merge(ss::MergeOp op) {
  if (firstSide && !hasBothSides)
    return op.emitOpError("takes a block with one orthonormal side, expected "
                          "ss.orthogonalize_side of the other one before");
  k.note("the active rows are free for new ones: weight -1");
  k.loop(k.index(0), k.index(t.shape.active), 1, [&](Value i) {
    Value source = k.name("source", k.toIndex(k.read(order, i)));
    k.branch(k.atLeast(source, k.index(0)),
             [&] { k.write(k.real(-1), weights, source); });
  });
  return success();
}

LogicalResult CompactLowering::truncate(ss::PolicyAttr policy) {
  Value bits = k.read(status, k.index(0));
  Value broken = k.less(
      k.integer(0), k.bitAnd(bits, k.integer(SS_STATUS_NOT_FINITE)));
  k.branch(
      broken, [&] { poison(); },
      [&] {
        Value limit = k.name("threshold", threshold(policy, largestWeight()));
        Value kept = keptNew(policy, limit);
        kept = policy.isFixed() ? limitToBlock(kept)
                                : limitRank(policy, limit, kept);
        formKeptRows(kept);
        while (next && shares < NextState::kShares)
          askAhead();
        placeRows(limit, kept);
      });
  Value before = k.read(t.arguments["status"], t.state);
  k.write(k.bitOr(before, k.read(status, k.index(0))), t.arguments["status"],
          t.state);
  return success();
}

void CompactLowering::poison() {
  k.note("not finite: the state becomes one NaN component");
  const LayerShape &s = t.shape;
  Value zero = k.index(0);
  k.store(k.splat(k.lanes({s.dk}), k.real(1)), t.arguments["rows"],
          t.row(zero, 0));
  k.store(k.splat(k.lanes({s.dv}), k.real(1)), t.arguments["rows"],
          t.row(zero, s.dk));
  k.write(k.real(std::numeric_limits<double>::quiet_NaN()),
          t.arguments["weights"], t.base);
  writeRank(k.index(1));
}

void CompactLowering::writeRank(Value rank) {
  if (sinkRows)
    rank = k.add(rank, sinkRows);
  k.write(k.toI32(rank), t.arguments["rank"], t.state);
}

Value CompactLowering::largestWeight() {
  k.note("truncate: drop what is small against the largest weight");
  int64_t chunk = std::min<int64_t>(32, t.shape.rankBound);
  Type tile = k.lanes({chunk});
  Value first = newOrder
                    ? k.reduceMax(k.load(k.lanes({m}), newWeights, k.index(0)))
                    : k.read(newWeights, k.index(0));
  Values largest = k.loop(
      k.index(0), t.rank, chunk, {first},
      [&](Value i, ValueRange carried) -> Values {
        Value w = k.load(tile, weights, i, Value(), k.sub(t.rank, i));
        return {k.max(carried[0], k.reduceMax(w))};
      });
  return k.name("largest", largest[0]);
}

Value CompactLowering::threshold(ss::PolicyAttr policy, Value largest) {
  Value lowest = k.mul(largest, k.constant("zero_share", kZeroShare));
  if (noise)
    lowest = k.max(lowest, noise);
  switch (policy.getKind()) {
  case ss::PolicyKind::relative:
    return k.max(lowest, k.mul(largest, t.arguments["policy_value"]));
  case ss::PolicyKind::energy:
    return energyThreshold(lowest);
  case ss::PolicyKind::fixed:
  case ss::PolicyKind::budget: // max_rank is the budget
    return lowest;
  }
  llvm_unreachable("every policy is handled");
}

void CompactLowering::rankWeights() {
  if (total) // since then none has changed
    return;
  // All weights in one descending list: old ones, then the new ones.
  int64_t bound = t.shape.rankBound + m;
  allWeights = k.name("all_weights", k.shared({bound}, k.f32()));
  ranking = k.name("ranking", k.shared({bound}, k.i32()));
  auto copy = [&](Value from, int64_t size, Value count, Value offset) {
    overWeights(size, count, [&](Type tile, Value i, Value limit) {
      k.store(k.load(tile, from, i, Value(), limit), allWeights,
              k.add(offset, i), Value(), limit);
    });
  };
  copy(weights, t.shape.rankBound, t.rank, k.index(0));
  copy(newWeights, m, k.index(m), t.rank);
  total = k.name("total", k.add(t.rank, k.index(m)));
  k.topK(allWeights, total, ranking);
}

Value CompactLowering::rankedWeight(Value i) {
  return k.max(k.read(allWeights, k.toIndex(k.read(ranking, i))), k.real(0));
}

Value CompactLowering::energyThreshold(Value lowest) {
  rankWeights();
  Values all = k.loop(k.index(0), total, 1, {k.real(0)},
                      [&](Value i, ValueRange sum) -> Values {
                        Value w = rankedWeight(i);
                        return {k.fma(w, w, sum[0])};
                      });
  Value wanted = k.mul(all[0], t.arguments["policy_value"]);
  // The last weight that is needed to reach the wanted share.
  Values reached = k.loop(
      k.index(0), total, 1, {k.real(0), lowest},
      [&](Value i, ValueRange carried) -> Values {
        Value w = rankedWeight(i);
        Value needed = k.less(carried[0], wanted);
        return {k.fma(w, w, carried[0]), k.select(needed, w, carried[1])};
      });
  return k.max(lowest, reached[1]);
}

void CompactLowering::dropBeyond(Value most) {
  // By place and not by weight, as equal weights would all stay.
  rankWeights();
  k.loop(most, total, 1, [&](Value i) {
    Value id = k.toIndex(k.read(ranking, i));
    k.branch(
        k.less(id, t.rank), [&] { k.write(k.real(-1), weights, id); },
        [&] { k.write(k.real(-1), newWeights, k.sub(id, t.rank)); });
  });
}

/// One more where `weight` is kept.
static Value countIfKept(KernelBuilder &k, Value weight, Value limit,
                         Value count) {
  return k.add(count, k.select(isKept(k, weight, limit), k.index(1),
                               k.index(0)));
}

Value CompactLowering::limitRank(ss::PolicyAttr policy, Value limit,
                                 Value kept) {
  k.note("no more than max_rank components, nor than the block has room for");
  Value room = k.name(
      "room", k.toIndex(k.read(t.arguments["row_capacity"], t.state)));
  Value largest = k.toIndex(t.arguments["max_rank"]);
  Value most = k.name("most", k.select(k.less(room, largest), room, largest));
  auto keepMost = [&]() -> Values {
    Values all = k.loop(
        k.index(0), t.rank, 1, {kept},
        [&](Value i, ValueRange count) -> Values {
          return {countIfKept(k, k.read(weights, i), limit, count[0])};
        });
    return k.choose(
        k.less(most, all[0]),
        [&] {
          addStatus(k.integer(SS_STATUS_TIGHTENED));
          dropBeyond(most);
          return Values{keptNew(policy, limit)};
        },
        [&] { return Values{kept}; });
  };
  // Only a state that may not fit pays for the count.
  Values result = k.choose(k.less(most, k.add(t.rank, kept)), keepMost,
                           [&] { return Values{kept}; });
  return result[0];
}

/// Of a fixed rank all components are new ones, the largest first: R at most,
/// and where there was no memory for a larger block as many as it holds.
Value CompactLowering::limitToBlock(Value kept) {
  Value room = k.name(
      "room", k.toIndex(k.read(t.arguments["row_capacity"], t.state)));
  if (sinkRows)
    room = k.sub(room, sinkRows);
  Value isTight = k.less(room, kept);
  k.branch(isTight, [&] { addStatus(k.integer(SS_STATUS_TIGHTENED)); });
  return k.name("kept_new", k.select(isTight, room, kept));
}

Value CompactLowering::keptNew(ss::PolicyAttr policy, Value limit) {
  if (newOrder)
    return listKept(policy, limit);
  int64_t most = policy.isFixed() ? t.shape.active : m;
  Values kept = k.loop(k.index(0), k.index(most), 1, {k.index(0)},
                       [&](Value i, ValueRange count) -> Values {
                         return {countIfKept(k, k.read(newWeights, i), limit,
                                             count[0])};
                       });
  return k.name("kept_new", kept[0]);
}

Value CompactLowering::listKept(ss::PolicyAttr policy, Value limit) {
  if (policy.isFixed()) {
    // The largest R, of which those below the threshold come last.
    k.topK(newWeights, k.index(m), newOrder);
    Values kept = k.loop(
        k.index(0), k.index(t.shape.active), 1, {k.index(0)},
        [&](Value i, ValueRange count) -> Values {
          Value source = k.toIndex(k.read(newOrder, i));
          return {countIfKept(k, k.read(newWeights, source), limit, count[0])};
        });
    return k.name("kept_new", kept[0]);
  }
  Values kept = k.loop(
      k.index(0), k.index(m), 1, {k.index(0)},
      [&](Value i, ValueRange count) -> Values {
        // A dropped one's place is taken by the next.
        k.write(k.toI32(i), newOrder, count[0]);
        return {countIfKept(k, k.read(newWeights, i), limit, count[0])};
      });
  return k.name("kept_new", kept[0]);
}

void CompactLowering::writeNewRows(Value first, Value kept, Value free) {
  const LayerShape &s = t.shape;
  Value zero = k.index(0);
  struct Moved {
    Value isThere, from, to, v, u;
  };
  SmallVector<Moved> moved;
  for (int64_t r = 0; r < rowsInFlight; ++r) {
    Value number = r == 0 ? first : k.add(first, k.index(r));
    Moved row;
    if (rowsInFlight > 1) {
      row.isThere = k.less(number, kept);
      number = k.select(row.isThere, number, zero);
    }
    row.from = newOrder ? k.name("source", k.toIndex(k.read(newOrder, number)))
                        : number;
    Value place = k.toIndex(k.read(places, number));
    Value behind = k.add(t.rank, k.sub(number, free));
    row.to = k.name("place", k.select(k.less(number, free), place, behind));
    auto load = [&](const BlockSide &side) {
      // Rows that were formed alone lie in the order in which they are written.
      return k.load(k.lanes({side.columns}), side.formed ? side.formed : side.rows,
                    {side.formed ? number : row.from, zero});
    };
    row.v = load(right);
    row.u = load(left);
    moved.push_back(row);
  }
  for (Moved &row : moved) {
    auto write = [&] {
      t.storeRow(row.v, row.to, 0);
      t.storeRow(row.u, row.to, s.dk);
      k.write(k.read(newWeights, row.from), weights, row.to);
    };
    if (row.isThere)
      k.branch(row.isThere, write);
    else
      write();
  }
}

void CompactLowering::moveRow(Value from, Value to) {
  const LayerShape &s = t.shape;
  Value v = k.load(k.lanes({s.dk}), t.arguments["rows"], t.row(from, 0));
  Value u = k.load(k.lanes({s.dv}), t.arguments["rows"], t.row(from, s.dk));
  k.store(v, t.arguments["rows"], t.row(to, 0));
  k.store(u, t.arguments["rows"], t.row(to, s.dk));
  k.write(k.read(weights, from), weights, to);
}

void CompactLowering::placeRows(Value limit, Value kept) {
  Value zero = k.index(0), one = k.index(1), last = k.index(m);
  places = k.name("places", k.shared({m + 1}, k.i32()));
  k.note("dropped rows are places for new ones");
  Values free = k.loop(
      zero, t.rank, 1, {zero}, [&](Value i, ValueRange count) -> Values {
        // The place of a row that stays is overwritten by the next one.
        Value at = k.select(k.less(count[0], last), count[0], last);
        k.write(k.toI32(i), places, at);
        Value stays = isKept(k, k.read(weights, i), limit);
        return {k.add(count[0], k.select(stays, zero, one))};
      });
  k.name("free", free[0]);
  k.note("new rows go there, then to the end");
  k.loop(zero, kept, rowsInFlight,
         [&](Value first) { writeNewRows(first, kept, free[0]); });
  k.note("the last row takes the place of every other dropped one");
  Values rank = k.choose(
      k.less(kept, free[0]), [&] { return fillPlaces(limit); },
      [&] { return Values{k.add(t.rank, k.sub(kept, free[0]))}; });
  storeWeights(k.name("new_rank", rank[0]));
}

CompactLowering::Values CompactLowering::fillPlaces(Value limit) {
  Value one = k.index(1);
  return k.loop(
      k.index(0), t.rank, 1, {t.rank},
      [&](Value step, ValueRange carried) -> Values {
        Value end = carried[0];
        Value i = k.name("row", k.sub(k.sub(t.rank, step), one));
        return k.choose(
            isKept(k, k.read(weights, i), limit), [&] { return Values{end}; },
            [&] {
              Value last = k.name("last", k.sub(end, one));
              k.branch(k.less(i, last), [&] { moveRow(last, i); });
              return Values{last};
            });
      });
}

void CompactLowering::storeWeights(Value rank) {
  overWeights(t.shape.rankBound, rank, [&](Type tile, Value i, Value limit) {
    k.store(k.load(tile, weights, i, Value(), limit), t.arguments["weights"],
            k.add(t.base, i), Value(), limit);
  });
  writeRank(rank);
}

LogicalResult lowerCompact(ss::FusedOp fused, const LayerShape &shape,
                           const KernelArguments &arguments,
                           const KernelChoices &choices, KernelBuilder &k) {
  // The routines of the device library take matrices up to this size.
  constexpr int64_t kLargestBlock = 64;
  if (shape.block() > kLargestBlock)
    return fused.emitOpError("works on ")
           << shape.block() << " components (" << shape.active << " active and "
           << shape.capacity << " buffered ones), expected at most "
           << kLargestBlock << "; make active or buffer smaller";
  LogicalResult result = success();
  overWork(k, arguments, [&](Value program, Value state) {
    StateTables tables(k, shape, arguments);
    tables.locateState(state);
    tables.readExtent(arguments["count_ahead"]);
    tables.readRounding(arguments["count_ahead"]);
    std::optional<NextState> next;
    if (choices.asksAhead) {
      k.note("the state that comes next: its memory is asked for in time");
      Value due = k.toIndex(k.read(arguments["work_count"], k.index(0)));
      Value number = k.nextProgram();
      number = k.select(k.less(number, due), number, program);
      StateTables ahead(k, shape, arguments);
      ahead.locateState(k.toIndex(k.read(arguments["work"], number)));
      ahead.readExtent(arguments["count_ahead"]);
      next.emplace(ahead);
    }
    int64_t rowsInFlight = std::min<int64_t>(choices.rowsInFlight, 4);
    result = CompactLowering(fused, tables, rowsInFlight, choices,
                             next ? &*next : nullptr)
                 .run();
  });
  return result;
}

} // namespace sinkstate
