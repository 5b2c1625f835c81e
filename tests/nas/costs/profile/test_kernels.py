"""Names of GPU kernels, as profilers print them."""

from nas.costs.profile.kernels import on_tensor_cores


def test_kernel_names_tell_tensor_cores() -> None:
    kernels = [
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT",
        "nvjet_tst_192x192_64x4_2x1_v_bz_TNN",
        "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn",
        "volta_h884gemm_64x128_ldg8_nn",
        "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
        "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x5_nn_align8",
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>",
        "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x64",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
        "triton_tem_fused_mm_0",
    ]
    assert not [kernel for kernel in kernels if not on_tensor_cores(kernel)]


def test_other_kernels_do_not_run_on_tensor_cores() -> None:
    kernels = [
        "ampere_sgemm_128x64_tn",
        "cutlass_80_simt_sgemm_128x128_8x4_nn_align1",
        "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
        "triton_poi_fused_add_0",
        "triton_per_fused_native_layer_norm_2",
        "Memcpy HtoD (Pageable -> Device)",
        "void at::native::multi_tensor_apply_kernel",
    ]
    assert not [kernel for kernel in kernels if on_tensor_cores(kernel)]
