"""Elements: partitions of a data space, and the distances between users and samples they give."""

from typing import TYPE_CHECKING

from elementdp._lazy import lazy

if TYPE_CHECKING:
    from elementdp.elements.clusters import Clusters, kmeans, nearest
    from elementdp.elements.distance import are_neighbours, sample_distance, user_distance
    from elementdp.elements.partition import Item, Multiset, Partition
    from elementdp.elements.sensitivity import element_sensitivity, global_sensitivity
    from elementdp.elements.urls import domain_of

__all__ = [
    "Clusters",
    "Item",
    "Multiset",
    "Partition",
    "are_neighbours",
    "domain_of",
    "element_sensitivity",
    "global_sensitivity",
    "kmeans",
    "nearest",
    "sample_distance",
    "user_distance",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        ".clusters": "Clusters kmeans nearest",
        ".distance": "are_neighbours sample_distance user_distance",
        ".partition": "Item Multiset Partition",
        ".sensitivity": "element_sensitivity global_sensitivity",
        ".urls": "domain_of",
    },
)
