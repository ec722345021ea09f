"""Running counts: trees and matrix factorizations."""
