//===- Presets.cpp - Sizes of published models ----------------------------===//
//
// Each preset is the part of the model's config.json that ss-import reads.
//
//===----------------------------------------------------------------------===//

#include "tools/ss-import/Import.h"

using namespace sinkstate;

static const Preset kPresets[] = {
    {"Nemotron-3-Nano-4B", "21 Mamba-2 of 42 layers, 96 heads of 80 x 128",
     R"json({
  "model_type": "nemotron_h", "num_hidden_layers": 42,
  "hybrid_override_pattern": "M-M-M-MM-M-M*-M-M*-M-M-M*-M-M-MM*-MMM-M-M-",
  "mamba_num_heads": 96, "n_groups": 8, "mamba_head_dim": 80, "ssm_state_size": 128
})json"},
    {"Nemotron-3-Nano-30B-A3B", "23 Mamba-2 of 52 layers, 64 heads of 64 x 128",
     R"json({
  "model_type": "nemotron_h", "num_hidden_layers": 52,
  "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
  "mamba_num_heads": 64, "n_groups": 8, "mamba_head_dim": 64, "ssm_state_size": 128
})json"},
    {"Nemotron-3-Super-120B", "40 Mamba-2 of 88 layers, 128 heads of 64 x 128",
     R"json({
  "model_type": "nemotron_h", "num_hidden_layers": 88,
  "hybrid_override_pattern": "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",
  "mamba_num_heads": 128, "n_groups": 8, "mamba_head_dim": 64, "ssm_state_size": 128
})json"},
    {"Qwen3.5-9B", "24 GDN of 32 layers, 32 heads (16 of keys) of 128 x 128",
     R"json({
  "model_type": "qwen3_5", "num_hidden_layers": 32, "full_attention_interval": 4,
  "linear_num_value_heads": 32, "linear_num_key_heads": 16,
  "linear_value_head_dim": 128, "linear_key_head_dim": 128
})json"},
    {"Qwen3-Next-80B-A3B",
     "36 GDN of 48 layers, 32 heads (16 of keys) of 128 x 128", R"json({
  "model_type": "qwen3_next", "num_hidden_layers": 48, "full_attention_interval": 4,
  "linear_num_value_heads": 32, "linear_num_key_heads": 16,
  "linear_value_head_dim": 128, "linear_key_head_dim": 128
})json"},
    {"Qwen3.5-27B", "48 GDN of 64 layers, 48 heads (16 of keys) of 128 x 128",
     R"json({
  "model_type": "qwen3_5", "num_hidden_layers": 64, "full_attention_interval": 4,
  "linear_num_value_heads": 48, "linear_num_key_heads": 16,
  "linear_value_head_dim": 128, "linear_key_head_dim": 128
})json"},
    {"Kimi-Linear-48B-A3B", "20 KDA of 27 layers, 32 heads of 128 x 128",
     R"json({
  "model_type": "kimi_linear", "num_hidden_layers": 27,
  "linear_attn_config": {"num_heads": 32, "head_dim": 128,
    "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26]}
})json"},
    {"Kimi-K3", "69 KDA of 93 layers, 96 heads of 128 x 128, gate bound -5",
     R"json({
  "model_type": "kimi_linear", "num_hidden_layers": 93,
  "linear_attn_config": {"num_heads": 96, "head_dim": 128, "gate_lower_bound": -5.0,
    "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26, 27, 29, 30, 31,
      33, 34, 35, 37, 38, 39, 41, 42, 43, 45, 46, 47, 49, 50, 51, 53, 54, 55, 57, 58, 59, 61, 62, 63,
      65, 66, 67, 69, 70, 71, 73, 74, 75, 77, 78, 79, 81, 82, 83, 85, 86, 87, 89, 90, 91]}
})json"},
    {"GLM-5.3-Flash",
     "34 KDA of 45 layers, 64 heads of 128 x 128, gate bound -5", R"json({
  "model_type": "kimi_linear", "num_hidden_layers": 45,
  "linear_attn_config": {"num_heads": 64, "head_dim": 128, "gate_lower_bound": -5.0,
    "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26, 27, 29, 30, 31,
      33, 34, 35, 37, 38, 39, 41, 42, 43, 45]}
})json"},
};

llvm::ArrayRef<Preset> sinkstate::getPresets() { return kPresets; }
