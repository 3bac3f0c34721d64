"""Misprints of the paper: where, what is printed, what it should be. Each was checked by derivation or simulation."""

from __future__ import annotations

MISPRINTS: tuple[tuple[str, str, str], ...] = (
    ("Sec. 5, general FN formula", "σψ inside erf", "ψ, which already contains σ"),
    ("Eq. large_rho", "ψ_ARDr ~ ρ⁻¹", "ψ_ARDr ~ ρ^(−1/2), so FP_ARDr → .3173; ψ_L ~ σ√(ln ρ/ρ)"),
    ("Sec. 5, after Fig. FP_FN_rho", "“false negative rate … is constant for ARDvi and MAP”", "false positive rate"),
    ("Alg. ARDr, line 4", "− ∇g", "+ ∇g, as in line 3 and in Eq. ARDr_root_c*"),
    ("Alg. MAP-STSBL, lines 3–4", "zeroes γ off S and recurses on S", "S is the removed set: zero γ_S, recurse off S"),
    ("Eq. AICc", "2k − L", "2k + L, plus (2k² + 2k)/(m − k − 1)"),
    ("Sec. 4.3, threshold equivalence of MAP", "|·| > φ ⇔ h ≤ τ", "⇔ h ≥ τ"),
    ("Eq. for φ", "ξ_i² under the root; mean 0", "ξ*² under the root; mean ξ_i"),
    ("Eq. single_thresh_criteria", "Σ_ii⁻¹", "(Σ⁻¹)_ii; 1/Σ_ii differs off orthogonal columns"),
    ("Eq. g_examples", "g = min{λγ, η}, which bends at η/λ", "Sec. 6 and the code bend at γ = η: λσ⁻² min{γ, η}"),
    ("KKT lines", "+ Θᵀν", "− Θᵀν: the statistic is ρ⁻¹Θᵀy = ξ + ρ⁻¹Θᵀν; rates are unchanged"),
    ("Sec. 2", "θ(X) is d × m", "m × d"),
    ("Algs. 1–3", "σ²I + ΘΓΘ", "σ²I + ΘΓΘᵀ"),
    ("Sec. 3.2", "joint posterior of θ, γ", "of ξ, γ"),
    ("Sec. 4.3", "‖ξ‖₀ < 0", "‖ξ‖₀ < d"),
    ("Eq. sparse_xi_posterior", "|Σ_ξ|", "|Σ_ξ|^(1/2)"),
    ("Captions of both ARDr figures", "equations of M-STSBL", "equations of ARDr"),
    ("Caption of Fig. orthonormal_variance_inflation", "ξ held fixed", "Θ, ρ and ξ are drawn anew in every trial"),
    ("Sec. 6.1", "singular values between 10⁻² and 0", "between 10⁻² and 10⁰"),
    ("Sec. 6.4", "200 rows and 201 rows", "200"),
    ("Sec. 6.4", "“all methods except ARDvi added a single term”", "missed a single term"),
    ("Sec. 6.5", "1024 times; initial condition x", "1072 times; cos(x/8)(1 + sin(x/16))"),
    (
        "Sec. 6.5, truth behind the errors",
        "u_t = + uu_x + u_xx + u_xxxx in the notebook",
        "all three signs are negative",
    ),
    ("App. B, last line", "ρ⁻¹", "ρ"),
    ("App. C", "exp(h(−μ))", "exp(−h(μ))"),
)
