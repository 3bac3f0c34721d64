from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from ardea.core.lazy import cached_property


class Counted:
    asked = 0

    @cached_property
    def value(self):
        """A number."""
        self.asked += 1
        return 7


def test_a_value_is_computed_once_and_can_be_set_and_deleted():
    one = Counted()
    assert one.value == one.value == 7
    assert one.asked == 1
    one.value = 8
    assert one.value == 8
    del one.value
    assert one.value == 7
    assert Counted.value.__doc__ == "A number."


def test_instances_do_not_wait_for_each_other():
    both = Barrier(2)

    class Meeting:
        @cached_property
        def place(self):
            return both.wait(timeout=60)  # broken, with an error, if one had to wait for the other

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda one: one.place, [Meeting(), Meeting()])) == [0, 1]
