"""Derivatives with input-dependent weights as constants."""

import torch
import torch.nn.functional as F

from nas.report.wiring.fixed_weights import DetachNonlinearities


def test_nonlinear_functions_are_constants() -> None:
    x = torch.randn(4, 8).double().requires_grad_()
    for function in (torch.tanh, torch.sigmoid, F.gelu, F.softplus, torch.exp, lambda x: x.softmax(-1), lambda x: x**2):
        expected = function(x).detach()
        with DetachNonlinearities():
            (back,) = torch.autograd.grad((function(x) * x).sum(), x)
        torch.testing.assert_close(back, expected)


def test_linear_functions_have_their_derivatives() -> None:
    x, weight = torch.randn(4, 8).double().requires_grad_(), torch.randn(8, 8).double()
    with DetachNonlinearities():
        (back,) = torch.autograd.grad((F.linear(x, weight) + torch.stack((x, x)).mean(0)).sum(), x)
    torch.testing.assert_close(back, (weight.sum(0) + 1).expand(4, 8))


def test_norms_have_derivatives_at_a_constant_scale() -> None:
    x, gain, shift = torch.randn(3, 4, 8).double().requires_grad_(), torch.randn(8).double(), torch.randn(8).double()
    signs = torch.randn(3, 4, 8).double()
    vjp = signs * gain
    for norm, spread, expected in (
        (lambda x: F.layer_norm(x, (8,), gain, shift), x - x.mean(-1, keepdim=True), vjp - vjp.mean(-1, keepdim=True)),
        (lambda x: F.rms_norm(x, (8,), gain), x, vjp),
    ):
        with DetachNonlinearities():
            output = norm(x)
            (back,) = torch.autograd.grad(output, x, signs)
        torch.testing.assert_close(output, norm(x))
        scale = spread.detach().square().mean(-1, keepdim=True).rsqrt()
        torch.testing.assert_close(back, expected * scale, rtol=1e-3, atol=1e-3)  # the norms' epsilon


def test_products_and_unknown_functions_have_full_derivatives() -> None:
    x = torch.randn(5).double().requires_grad_()
    with DetachNonlinearities():
        (back,) = torch.autograd.grad((x * x).sum(), x)
        (other,) = torch.autograd.grad(torch.erf(x).sum(), x)
    torch.testing.assert_close(back, 2 * x.detach())
    assert (other > 0).all()
